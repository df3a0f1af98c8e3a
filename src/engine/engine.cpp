#include "src/engine/engine.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "ggml-like/error.h"

namespace infer {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Results that are not numbers mean that the weights are damaged.
void check_numbers(std::span<const float> results) {
  unsigned bad = 0;
  for (const float x : results) bad |= x != x ? 1 : 0;  // no early end, so that the loop vectorizes
  if (bad == 0) return;
  throw Error(ErrorCode::kInvalidFile,
              "[engine] the model's results are not numbers; infer inspect --verify looks for damaged weights");
}

// Whether the vector of a request is made of this position's hidden state, among others.
bool pools(const Sequence& s, int64_t position) {
  switch (s.request().pooling) {
    case Pooling::kNone:
      return false;
    case Pooling::kMean:
      return true;
    case Pooling::kLast:
      return position + 1 == s.prompt_length();
    case Pooling::kCls:
      return position == 0;
  }
  return false;
}

// The line that `note` gets where auto found room for a part of the model.
std::string partial_text(const Fit& fit, int n_layer, const DeviceSet& set) {
  std::string names;
  for (size_t d = 1; d < set.devices.size(); ++d) names += (d > 1 ? ", " : "") + set.devices[d]->name();
  return concat("[offload] -ngl auto on ", names, ": ", fit.parts, " of ", placeable_parts(n_layer), " layers fit; ",
                fit.shortage);
}

// Rows of logits in a step.
int logits_rows(const Model& model, const EngineOptions& options) {
  if (options.all_logits) return options.step_tokens;
  const uint64_t rows = options.logits_bytes / (sizeof(float) * static_cast<uint64_t>(model.n_vocab()));
  return static_cast<int>(
      std::clamp<uint64_t>(rows, static_cast<uint64_t>(std::max(options.max_sequences, 1)),
                           static_cast<uint64_t>(std::max(options.step_tokens, options.max_sequences))));
}

RunnerOptions runner_options(const std::shared_ptr<Model>& model, const EngineOptions& options,
                             const std::function<void(const std::string& line)>& note) {
  const int64_t context = choose_context(*model, options.context);
  // Far beyond any memory, and small enough that no size computed from it overflows.
  if (context > (int64_t{1} << 40)) {
    throw Error(ErrorCode::kOutOfMemory,
                concat("[memory] a context of ", context, " tokens is larger than any memory"));
  }
  RunnerOptions runner;
  runner.devices = open_devices(options);
  runner.placement = options.placement;
  runner.strict_offload = options.strict_offload;
  runner.key_type = options.key_type;
  runner.value_type = options.value_type;
  const int64_t blocks =
      options.cache_tokens > 0 ? blocks_for(options.cache_tokens) : blocks_for(context) * options.max_sequences;
  runner.n_blocks.assign(model->cache_groups().size(), static_cast<int32_t>(std::min<int64_t>(blocks, INT32_MAX)));
  runner.observers = options.observers;
  runner.product_observer = options.product_observer;
  runner.capacity.tokens = static_cast<int>(std::min<int64_t>(options.step_tokens, context * options.max_sequences));
  runner.capacity.logits = std::min(logits_rows(*model, options), runner.capacity.tokens);
  runner.capacity.outputs = options.embeddings ? runner.capacity.tokens : runner.capacity.logits;
  runner.capacity.sequences = options.max_sequences;
  runner.capacity.groups = static_cast<int>(model->cache_groups().size());
  runner.capacity.blocks_per_sequence = static_cast<int>(std::min<int64_t>(blocks_for(context), INT32_MAX));
  if (options.placement.n_gpu_layers == kAutoLayers) {
    const Fit fit = fit_parts(model, runner, options.reserved);
    runner.placement.n_gpu_layers = fit.parts;
    if (note && !fit.shortage.empty()) note(partial_text(fit, model->n_layer(), *runner.devices));
  }
  return runner;
}

}  // namespace

Engine::~Engine() = default;

int64_t choose_context(const Model& model, int64_t asked) {
  if (asked > 0) return asked;
  const int64_t trained = model.context_length();
  return trained > 0 ? std::min<int64_t>(trained, kDefaultContext) : kDefaultContext;
}

std::shared_ptr<DeviceSet> open_devices(const EngineOptions& options) {
  if (options.opened) return options.opened;
  const DeviceOptions device = {options.n_threads, options.n_threads_batch, options.processors, options.deterministic,
                                options.blas,      options.blas_min_rows};
  if (!options.devices.empty()) return open_devices(options.devices, device);
  const auto tell = [&](const std::string& line) {
    if (options.strict_offload) throw Error(ErrorCode::kUnsupported, line);
    if (options.note) options.note(line);
  };
  const std::string gpu = default_accelerator();
  const int asked = options.placement.n_gpu_layers;
  if (gpu.empty() && asked != kAutoLayers && asked != 0) {
    tell(concat("[offload] -ngl ", asked == kAllLayers ? "all" : concat(asked),
                ": all on the CPU, since no GPU was found (see infer devices, --device)"));
  }
  return open_default_devices(gpu, device, tell);
}

std::vector<DeviceUse> plan_memory(std::shared_ptr<Model> model, const EngineOptions& options) {
  const RunnerOptions runner = runner_options(model, options, nullptr);
  return plan_memory_use(std::move(model), runner);
}

Engine::Engine(std::shared_ptr<Model> model, const EngineOptions& options)
    : tokenizer_(model->vocabulary()),
      dry_breakers_(tokenizer_),
      pacer_(options.max_itl_ms / 1000),
      isolate_errors_(options.isolate_errors),
      note_(options.note) {
  RunnerOptions runner = runner_options(model, options, options.note);
  SchedulerConfig config;
  config.token_budget = options.step_tokens;
  config.max_sequences = options.max_sequences;
  config.max_outputs = logits_rows(*model, options);
  config.max_waiting = options.max_waiting;
  config.max_context = choose_context(*model, options.context);
  config.n_vocab = static_cast<size_t>(model->n_vocab());
  for (const TokenId id : tokenizer_.eog()) config.eog_tokens.push_back(id);
  if (options.profile) profile_ = std::make_unique<Profile>();
  runner.profile = profile_.get();
  runner_ = load_runner(std::move(model), runner, options.note);
  note_fallbacks();
  scratch_.resize(static_cast<size_t>(runner_->n_threads()));

  std::vector<CacheGroup> groups = runner_->model().cache_groups();
  for (size_t g = 0; g < groups.size(); ++g) groups[g].n_blocks = runner.n_blocks[g];
  scheduler_ = std::make_unique<Scheduler>(config, groups);
  inputs_ = std::make_unique<StepInputs>(runner.capacity);
}

void Engine::note_fallbacks() {
  const std::vector<Fallback>& fallbacks = runner_->plans().fallbacks();
  for (; n_noted_ < fallbacks.size(); ++n_noted_) {
    if (note_) note_("[offload] " + fallback_text(fallbacks[n_noted_]));
  }
}

bool Engine::submit(Request request) {
  for (const TokenId token : request.prompt) {
    if (token < 0 || token >= model().n_vocab()) {
      throw Error(ErrorCode::kInvalidArgument,
                  concat("[request] token ids below ", model().n_vocab(), ", found ", token));
    }
  }
  if (request.sampling.has_dry() && !request.dry_breakers) {
    request.dry_breakers = dry_breakers_.get(request.sampling.dry_sequence_breakers);
  }
  if (request.pooling != Pooling::kNone && inputs_->capacity().outputs < inputs_->capacity().tokens) {
    throw Error(ErrorCode::kUnsupported, "[request] pooling: an engine made for embeddings, found one for text alone");
  }
  const RequestId id = request.id;
  if (!scheduler_->add(std::move(request))) return false;
  times_[id] = {now(), 0};
  return true;
}

void Engine::cancel(RequestId id, FinishReason reason) {
  scheduler_->finish(id, reason);
  times_.erase(id);
  pooled_.erase(id);
  if (scheduler_->find(id)) scheduler_->take(id);
}

void Engine::reset() {
  scheduler_->reset();
  times_.clear();
  pooled_.clear();
}

bool Engine::idle() const { return scheduler_->idle(); }

// Lays the scheduled tokens out as the step's rows. Outputs: first the rows with logits, then those to be pooled, both
// in the order of the plan.
void Engine::fill(const StepPlan& plan) {
  inputs_->clear();
  const size_t groups = static_cast<size_t>(inputs_->capacity().groups);
  std::vector<std::span<const int32_t>> tables(groups);
  std::vector<int> pooled_rows;
  for (const ScheduledSequence& s : plan.sequences) {
    for (size_t g = 0; g < groups; ++g) tables[g] = s.sequence->cache().table(g);
    const int index = inputs_->add_sequence(tables, static_cast<int>(s.first_position + s.n_tokens));
    for (int32_t i = 0; i < s.n_tokens; ++i) {
      const int64_t position = s.first_position + i;
      const int row = inputs_->add_token(index, s.sequence->tokens()[position], static_cast<int32_t>(position),
                                         i >= s.first_output);
      if (pools(*s.sequence, position)) pooled_rows.push_back(row);
    }
  }
  for (const int row : pooled_rows) inputs_->add_hidden_output(row);
}

// Adds the hidden states of this step up, in the order of their positions, whatever the chunks.
void Engine::pool(const StepPlan& plan) {
  int output = inputs_->n_logits();
  for (const ScheduledSequence& s : plan.sequences) {
    if (s.sequence->request().pooling == Pooling::kNone) continue;
    std::vector<double>& sums = pooled_[s.sequence->id()];
    if (s.first_position == 0) sums.clear();  // a new start, after a preemption perhaps
    sums.resize(static_cast<size_t>(model().n_embd()));
    for (int64_t position = s.first_position; position < s.first_position + s.n_tokens; ++position) {
      if (!pools(*s.sequence, position)) continue;
      const std::span<const float> hidden = runner_->hidden(output++);
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += hidden[i];
    }
  }
}

// Looks at the rows of logits of every sequence; failures[i] is why those of plan.sequences[i] are of no use.
void Engine::check_rows(const StepPlan& plan, std::vector<std::exception_ptr>& failures) {
  std::vector<size_t> owners;  // of each row
  for (size_t i = 0; i < plan.sequences.size(); ++i) {
    const ScheduledSequence& s = plan.sequences[i];
    owners.insert(owners.end(), static_cast<size_t>(s.n_tokens - s.first_output), i);
  }
  std::vector<std::exception_ptr> found(owners.size());
  runner_->parallel_for(static_cast<int64_t>(owners.size()), [&](int64_t row, int) {
    try {
      check_numbers(runner_->logits(static_cast<int>(row)));
    } catch (const Error&) {
      found[static_cast<size_t>(row)] = std::current_exception();
    }
  });
  for (size_t row = 0; row < found.size(); ++row) {
    if (found[row]) failures[owners[row]] = found[row];
  }
}

// Its logits begin with output row `output`.
void Engine::report_logits(const ScheduledSequence& s, int output) const {
  if (!on_logits_) return;
  for (int32_t row = s.first_output; row < s.n_tokens; ++row, ++output) {
    const int64_t position = s.first_position + row;
    on_logits_(s.sequence->id(), position, runner_->logits(output));
    if (!s.samples || row != s.first_sampled_row()) continue;
    for (const RequestId choice : s.sequence->request().choices) on_logits_(choice, position, runner_->logits(output));
  }
}

// Draws from the sampled rows, up to the first token that differs from the draft at its place; for a choice from the
// first of them.
void Engine::draw_tokens(Draw& draw, SamplerScratch& scratch) const {
  const ScheduledSequence& s = *draw.scheduled;
  Sampler& sampler = draw.sampler ? *draw.sampler : s.sequence->sampler();
  for (int32_t i = 0; i <= s.n_drafts; ++i) {
    const int64_t position = s.first_position + s.first_sampled_row() + i;
    const TokenId token = sampler.sample(runner_->logits(draw.output + i), s.sequence->history(position), scratch);
    sampler.accept(token);
    draw.tokens.push_back(token);
    if (draw.sampler || (i < s.n_drafts && s.sequence->tokens()[position + 1] != token)) return;
  }
}

void Engine::fail(const Sequence& s, const std::exception_ptr& failure, Drawn& drawn) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    if (!isolate_errors_) throw;
    drawn.failures.push_back({s.id(), error.what()});
    for (const RequestId choice : s.request().choices) drawn.failures.push_back({choice, error.what()});
  }
  scheduler_->finish(s.id(), FinishReason::kError);
}

// Sequences and choices are drawn for on all threads; each has a sampler of its own, so that the order changes nothing.
Engine::Drawn Engine::draw(const StepPlan& plan) {
  Drawn drawn;
  drawn.tokens.resize(plan.sequences.size());
  std::vector<std::exception_ptr> failures(plan.sequences.size());
  check_rows(plan, failures);
  std::vector<Draw> draws;
  int output = 0;
  for (size_t i = 0; i < plan.sequences.size(); ++i) {
    const ScheduledSequence& s = plan.sequences[i];
    if (!failures[i]) report_logits(s, output);
    if (!failures[i] && s.samples) {
      const int sampled = output + s.first_sampled_row() - s.first_output;
      draws.push_back({&s, sampled, std::nullopt, {}, nullptr});
      const auto n_choices = static_cast<uint32_t>(s.sequence->request().choices.size());
      for (uint32_t c = 1; c <= n_choices; ++c) {
        draws.push_back({&s, sampled, s.sequence->sampler().for_choice(c), {}, nullptr});
      }
    }
    output += s.n_tokens - s.first_output;
  }
  runner_->parallel_for(static_cast<int64_t>(draws.size()), [&](int64_t i, int thread) {
    Draw& draw = draws[static_cast<size_t>(i)];
    try {
      draw_tokens(draw, scratch_[static_cast<size_t>(thread)]);
    } catch (const Error&) {
      draw.failure = std::current_exception();
    }
  });
  collect(plan, draws, failures, drawn);
  if (output > 0) {
    const std::span<const float> last = runner_->logits(output - 1);
    last_logits_.assign(last.begin(), last.end());
  }
  return drawn;
}

// Sums up what was drawn, and ends the sequences for which anything failed.
void Engine::collect(const StepPlan& plan, std::vector<Draw>& draws, std::vector<std::exception_ptr>& failures,
                     Drawn& drawn) {
  size_t next = 0;
  for (size_t i = 0; i < plan.sequences.size(); ++i) {
    const Sequence& s = *plan.sequences[i].sequence;
    const size_t begin = next;
    for (; next < draws.size() && draws[next].scheduled == &plan.sequences[i]; ++next) {
      if (draws[next].failure) failures[i] = draws[next].failure;
    }
    if (failures[i]) {
      fail(s, failures[i], drawn);
      continue;
    }
    if (begin == next) continue;
    drawn.tokens[i] = std::move(draws[begin].tokens);
    for (size_t d = begin + 1; d < next; ++d) {
      const auto index = static_cast<uint32_t>(d - begin);
      drawn.choices.push_back(
          {s.id(), index, s.request().choices[index - 1], std::move(*draws[d].sampler), draws[d].tokens[0]});
    }
  }
}

std::vector<float> Engine::take_pooled(const Sequence& s) {
  const auto sums = pooled_.extract(s.id()).mapped();
  const double n = s.request().pooling == Pooling::kMean ? static_cast<double>(s.prompt_length()) : 1;
  std::vector<float> pooled;
  for (const double sum : sums) pooled.push_back(static_cast<float>(sum / n));
  check_numbers(pooled);
  return pooled;
}

// What a sequence has come to; its tokens from `known_before` on are new.
Progress Engine::describe(const Sequence& s, int64_t known_before) {
  const Times& times = times_.at(s.id());
  Progress p;
  p.id = s.id();
  const auto fresh = s.known_tokens().subspan(static_cast<size_t>(known_before));
  p.tokens.assign(fresh.begin(), fresh.end());
  p.finished = s.finish_reason();
  p.prompt_tokens = s.prompt_length();
  p.cached_tokens = s.cached_prompt_tokens();
  p.queue_seconds = times.started - times.submitted;
  if (s.state() != SequenceState::kFinished || s.request().pooling == Pooling::kNone) return p;
  try {
    p.pooled = take_pooled(s);
  } catch (const Error& error) {
    if (!isolate_errors_) throw;
    p.finished = FinishReason::kError;
    p.error = error.what();
  }
  return p;
}

std::vector<Progress> Engine::step() {
  std::vector<Progress> progress;
  const auto running = scheduler_->running();
  const auto n_decodes = std::count_if(running.begin(), running.end(), [](auto s) { return s->remaining() == 1; });
  const StepPlan plan = scheduler_->schedule(pacer_.prompt_budget(static_cast<int>(n_decodes)));
  if (plan.empty()) return progress;
  const double start = now();
  for (const BlockCopy& copy : plan.copies) runner_->copy_block(copy.group, copy.from, copy.to);
  fill(plan);
  runner_->run(*inputs_);
  note_fallbacks();
  Drawn drawn = draw(plan);
  pool(plan);

  int64_t prompt_tokens = 0;
  std::vector<int64_t> known;
  for (const ScheduledSequence& s : plan.sequences) {
    Times& times = times_.at(s.sequence->id());
    if (times.started == 0) times.started = start;
    known.push_back(s.sequence->known());
    prompt_tokens += std::clamp<int64_t>(s.sequence->prompt_length() - s.first_position, 0, s.n_tokens);
  }
  scheduler_->commit(plan, drawn.tokens, drawn.choices);
  for (const Choice& choice : drawn.choices) {
    if (scheduler_->find(choice.id)) times_[choice.id] = times_.at(choice.parent);
  }

  int64_t generated = 0;
  const auto report = [&](const Sequence& s, int64_t known_before) {
    Progress p = describe(s, known_before);
    for (const Drawn::Failure& failure : drawn.failures) {
      if (failure.id == p.id) p.error = failure.error;
    }
    generated += static_cast<int64_t>(p.tokens.size());
    if (s.state() == SequenceState::kFinished) {
      times_.erase(s.id());
      scheduler_->take(s.id());
    }
    progress.push_back(std::move(p));
  };
  for (size_t i = 0; i < plan.sequences.size(); ++i) report(*plan.sequences[i].sequence, known[i]);
  for (const Choice& choice : drawn.choices) {
    if (const Sequence* s = scheduler_->find(choice.id)) report(*s, s->prompt_length());
  }
  for (const Drawn::Failure& failure : drawn.failures) {
    const auto found = std::find_if(progress.begin(), progress.end(), [&](auto& p) { return p.id == failure.id; });
    if (found != progress.end()) continue;
    Progress& choice = progress.emplace_back();  // which never came to be
    choice.id = failure.id;
    choice.finished = FinishReason::kError;
    choice.error = failure.error;
  }
  const double seconds = now() - start;
  last_step_ = {static_cast<int>(plan.sequences.size()), static_cast<int>(prompt_tokens),
                plan.n_tokens - static_cast<int>(prompt_tokens), seconds};
  pacer_.record(last_step_);
  stats_.prompt_tokens += prompt_tokens;
  stats_.generated_tokens += generated;
  if (prompt_tokens > 0) {
    ++stats_.prompt_steps;
    stats_.prompt_seconds += seconds;
  } else {
    ++stats_.decode_steps;
    stats_.decode_seconds += seconds;
  }
  return progress;
}

uint64_t Engine::last_logits_hash() const {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (const float x : last_logits_) {
    unsigned char bytes[sizeof(float)];
    std::memcpy(bytes, &x, sizeof(bytes));
    for (const unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3ull;
  }
  return hash;
}

}  // namespace infer
