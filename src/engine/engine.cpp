#include "src/engine/engine.h"

#include <algorithm>

#include "ggml-like/clock.h"
#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "src/engine/draft/load_draft.h"
#include "src/engine/run_step.h"
#include "src/model/classifier.h"

namespace infer {
namespace {

constexpr const char* kEncoderText =
    "This model is an encoder: it turns a text into a vector and predicts no tokens. Use infer embed, or the "
    "embeddings of infer serve.";

}  // namespace

Engine::~Engine() = default;

Engine::Engine(std::shared_ptr<Model> model, const EngineOptions& options)
    : tokenizer_(model->vocabulary()),
      dry_breakers_(tokenizer_),
      pacer_(model->config().causal ? options.max_itl_ms / 1000 : 0),
      isolate_errors_(options.isolate_errors),
      note_(options.note) {
  EngineOptions opened = with_prediction(options, *model);
  opened.opened = open_devices(options);
  RunnerOptions draft;
  if (opened.speculation.draft) {
    check_draft(*model, *opened.speculation.draft);
    draft = draft_runner_options(opened);
  }
  RunnerOptions runner = runner_options(model, opened, options.note);
  SchedulerConfig config;
  config.token_budget = static_cast<int32_t>(step_tokens(*model, options));
  config.whole_prompts = !model->config().causal;
  config.max_sequences = options.max_sequences;
  config.max_outputs = runner.capacity.logits;
  config.max_waiting = options.max_waiting;
  config.max_context = choose_context(*model, options.context);
  config.n_vocab = static_cast<size_t>(model->n_vocab());
  for (const TokenId id : tokenizer_.eog()) config.eog_tokens.push_back(id);
  if (options.profile) profile_ = std::make_unique<Profile>();
  runner.profile = profile_.get();
  runner_ = load_runner(std::move(model), runner, options.note);
  note_fallbacks();

  std::vector<CacheGroup> groups = runner_->model().cache_groups();
  for (size_t g = 0; g < groups.size(); ++g) groups[g].n_blocks = runner.n_blocks[g];
  scheduler_ = std::make_unique<Scheduler>(config, groups);
  inputs_ = std::make_unique<StepInputs>(runner.capacity);
  sampler_ = std::make_unique<StepSampler>(*runner_, config.n_vocab, isolate_errors_);
  if (opened.speculation.any() || opened.speculation.jump_forward) {
    speculator_ = std::make_unique<Speculator>(opened.speculation,
                                               opened.speculation.draft ? load_draft(opened, draft, config) : nullptr,
                                               tokenizer_, runner.capacity.logits, options.note);
  }
}

void Engine::note_fallbacks() {
  const std::vector<Fallback>& fallbacks = runner_->plans().fallbacks();
  for (; n_noted_ < fallbacks.size(); ++n_noted_) {
    if (note_) note_("[offload] " + fallback_text(fallbacks[n_noted_]));
  }
}

void Engine::prepare_pooling(Request& request) const {
  const Model& model = runner_->model();
  if (!model.config().causal) {
    if (request.pooling == Pooling::kNone) throw Error(ErrorCode::kUnsupported, kEncoderText);
    request.reuse_prefix = false;  // an embedding depends on the whole text, not just its prefix
  }
  if (request.pooling == Pooling::kNone) return;
  if (inputs_->capacity().outputs < inputs_->capacity().tokens) {
    throw Error(ErrorCode::kUnsupported,
                expected_found("request", "pooling", "an engine made for embeddings", "one for text"));
  }
  if (request.pooling != Pooling::kRank) return;
  if (!model.classifier()) {
    throw Error(ErrorCode::kUnsupported,
                "The model has no classifier, so it cannot rank texts. Choose a rerank model.");
  }
  request.pooling = model.classifier()->config.pooling;
  request.classify = true;
}

bool Engine::submit(Request request) {
  if (request.sampling.has_dry() && !request.dry_breakers) {
    request.dry_breakers = dry_breakers_.get(request.sampling.dry_sequence_breakers);
  }
  prepare_pooling(request);
  const RequestId id = request.id;
  if (!scheduler_->add(std::move(request))) return false;
  times_[id] = {steady_seconds(), 0};
  return true;
}

void Engine::cancel(RequestId id, FinishReason reason) {
  scheduler_->finish(id, reason);
  times_.erase(id);
  pooler_.forget(id);
  take(id);
}

// Removes a finished sequence, if it exists.
void Engine::take(RequestId id) {
  const Sequence* s = scheduler_->find(id);
  if (!s) return;
  if (speculator_) speculator_->end(*s);
  scheduler_->take(id);
}

void Engine::reset() {
  scheduler_->reset();
  times_.clear();
  pooler_.clear();
  if (speculator_) speculator_->reset();
}

bool Engine::idle() const { return scheduler_->idle(); }

std::vector<Progress> Engine::step() {
  const StepPlan plan = schedule();
  if (plan.empty()) return {};
  run(plan);
  SampledStep sampled = sample(plan);
  return commit(plan, sampled);
}

StepPlan Engine::schedule() {
  step_start_ = steady_seconds();
  if (speculator_) speculator_->propose(*scheduler_);
  const auto running = scheduler_->running();
  const auto n_decodes = std::count_if(running.begin(), running.end(), [](auto s) { return s->remaining() == 1; });
  return scheduler_->schedule(pacer_.prompt_budget(static_cast<int>(n_decodes)));
}

void Engine::run(const StepPlan& plan) {
  run_start_ = steady_seconds();
  const bool all_hidden = speculator_ && speculator_->wants_hidden();
  outputs_ = run_step(*runner_, *inputs_, plan, {sampler_->n_deciding(plan), all_hidden});
  note_fallbacks();
}

SampledStep Engine::sample(const StepPlan& plan) {
  SampledStep sampled = sampler_->sample(plan);
  pooler_.add(plan, *runner_, inputs_->n_logits());
  return sampled;
}

std::vector<Progress> Engine::commit(const StepPlan& plan, SampledStep& sampled) {
  int64_t prompt_tokens = 0;
  std::vector<int64_t> known;
  for (const ScheduledSequence& s : plan.sequences) {
    Times& times = times_.at(s.sequence->id());
    if (times.started == 0) times.started = step_start_;
    known.push_back(s.sequence->known());
    prompt_tokens += std::clamp<int64_t>(s.sequence->prompt_length() - s.first_position, 0, s.n_tokens);
  }
  for (const SampledStep::Failure& failure : sampled.failures) scheduler_->finish(failure.id, FinishReason::kError);
  scheduler_->commit(plan, sampled.tokens, sampled.choices);
  if (speculator_ && speculator_->wants_hidden()) speculator_->see(plan, *runner_, outputs_);
  if (speculator_) speculator_->learn(plan, sampled, steady_seconds() - run_start_);

  std::vector<Progress> progress;
  for (size_t i = 0; i < plan.sequences.size(); ++i) {
    progress.push_back(describe(*plan.sequences[i].sequence, known[i], sampled));
  }
  for (const Choice& choice : sampled.choices) {
    const Sequence* s = scheduler_->find(choice.id);
    if (!s) continue;
    times_[choice.id] = times_.at(choice.parent);
    progress.push_back(describe(*s, s->prompt_length(), sampled));
  }
  for (const SampledStep::Failure& failure : sampled.failures) {
    const auto found = std::find_if(progress.begin(), progress.end(), [&](auto& p) { return p.id == failure.id; });
    if (found != progress.end()) continue;
    Progress& choice = progress.emplace_back();  // a choice that never became a sequence
    choice.id = failure.id;
    choice.finished = FinishReason::kError;
    choice.error = failure.error;
  }
  for (const Progress& p : progress) {
    if (p.finished == FinishReason::kNone) continue;
    times_.erase(p.id);
    take(p.id);
  }
  record(plan, prompt_tokens, progress);
  return progress;
}

// Reports the tokens of the sequence from `known_before` on as new.
Progress Engine::describe(const Sequence& s, int64_t known_before, const SampledStep& sampled) {
  const Times& times = times_.at(s.id());
  Progress p;
  p.id = s.id();
  const auto fresh = s.known_tokens().subspan(static_cast<size_t>(known_before));
  p.tokens.assign(fresh.begin(), fresh.end());
  p.finished = s.finish_reason();
  p.prompt_tokens = s.prompt_length();
  p.cached_tokens = s.cached_prompt_tokens();
  p.computed_tokens = std::min(s.computed(), s.prompt_length());
  p.queue_seconds = times.started - times.submitted;
  p.drafts = s.draft_counts();
  for (const SampledStep::Failure& failure : sampled.failures) {
    if (failure.id == p.id) p.error = failure.error;
  }
  if (s.state() != SequenceState::kFinished || s.request().pooling == Pooling::kNone) return p;
  try {
    p.pooled = pooler_.take(s, runner_->model());
  } catch (const Error& error) {
    if (!isolate_errors_) throw;
    p.finished = FinishReason::kError;
    p.error = error.what();
  }
  return p;
}

void Engine::record(const StepPlan& plan, int64_t prompt_tokens, const std::vector<Progress>& progress) {
  const double seconds = steady_seconds() - step_start_;
  last_step_ = {static_cast<int>(plan.sequences.size()), static_cast<int>(prompt_tokens),
                plan.n_tokens - static_cast<int>(prompt_tokens), seconds};
  pacer_.record(last_step_);
  stats_.prompt_tokens += prompt_tokens;
  int64_t generated = 0;
  for (const Progress& p : progress) generated += static_cast<int64_t>(p.tokens.size());
  stats_.generated_tokens += generated;
  if (prompt_tokens > 0) {
    ++stats_.prompt_steps;
    stats_.prompt_seconds += seconds;
  } else {
    ++stats_.decode_steps;
    stats_.decode_tokens += generated;
    stats_.decode_rounds += std::ssize(plan.sequences);
    stats_.decode_seconds += seconds;
  }
}

}  // namespace infer
