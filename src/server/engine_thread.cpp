#include "src/server/engine_thread.h"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "ggml-like/error.h"
#include "src/server/stats.h"

namespace infer {
namespace {

constexpr std::chrono::milliseconds kResetInterval{200};

double seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

// A cache of only windows and states is never full, whatever the number of tokens.
int64_t cache_tokens_of(const Scheduler& scheduler) {
  const int64_t most = scheduler.cache().max_tokens();
  if (most < std::numeric_limits<int64_t>::max()) return most;
  return scheduler.config().max_context * scheduler.config().max_sequences;
}

std::vector<CacheGroupGauges> cache_group_gauges(const KvCache& cache) {
  std::vector<CacheGroupGauges> gauges;
  for (size_t i = 0; i < cache.groups().size(); ++i) {
    const BlockPool::Stats pool = cache.pool(i).stats();
    gauges.push_back(
        {cache_kind_name(cache.groups()[i].kind), {pool.total, pool.used, pool.cached, pool.free, pool.evictions}});
  }
  return gauges;
}

}  // namespace

EngineThread::EngineThread(std::unique_ptr<Engine> engine, Metrics& metrics,
                           std::function<void(const std::string&)> on_failure)
    : engine_(std::move(engine)),
      metrics_(metrics),
      on_failure_(std::move(on_failure)),
      cache_tokens_(cache_tokens_of(engine_->scheduler())) {
  engine_->on_logits(
      [this](RequestId id, int64_t position, std::span<const float> logits) { take_logits(id, position, logits); });
  if (engine_->speculator() && engine_->speculator()->draft()) {
    for (const DeviceUse& use : engine_->speculator()->draft()->runner().memory_use()) {
      draft_memory_.push_back(use.needed());
    }
  }
  metrics_.set_devices(device_gauges(engine_->runner().memory_use(), draft_memory_));
  publish();
  thread_ = std::thread([this] { run(); });
}

EngineThread::~EngineThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_one();
  thread_.join();
}

void EngineThread::submit(std::shared_ptr<Generation> generation) {
  const SamplingParams& sampling = generation->params.sampling;
  if (sampling.has_dry() && !generation->dry_breakers) {
    generation->dry_breakers = engine_->dry_breakers().get(sampling.dry_sequence_breakers);
  }
  {
    const std::lock_guard lock(mutex_);
    submitted_.push_back(std::move(generation));
  }
  work_.notify_one();
}

void EngineThread::cancel(Generation& generation) noexcept {
  generation.cancelled = true;
  {
    const std::lock_guard lock(mutex_);
    some_cancelled_ = true;
  }
  work_.notify_one();
}

void EngineThread::run() {
  for (bool stopping = false; !stopping;) {
    const Work work = wait_for_work();
    stopping = work.stopping;
    try {
      advance(work);
    } catch (const std::bad_alloc&) {
      drop_everything(work);
    } catch (const std::exception& error) {
      try {
        failure_ = error.what();
        stop_all(FinishReason::kError, failure_);
        publish();
      } catch (const std::bad_alloc&) {
        drop_everything(work);
      }
      on_failure_(failure_);
    }
  }
}

EngineThread::Work EngineThread::wait_for_work() {
  Work work;
  std::unique_lock lock(mutex_);
  const auto some = [&] { return stopping_ || !submitted_.empty() || some_cancelled_ || !choices_.empty(); };
  // Until the reset, the metrics still show what a dirty engine holds.
  if (engine_is_dirty_) work_.wait_for(lock, kResetInterval, some);
  else work_.wait(lock, some);
  work.submitted.swap(submitted_);
  work.some_cancelled = std::exchange(some_cancelled_, false);
  work.stopping = stopping_;
  return work;
}

void EngineThread::advance(const Work& work) {
  if (engine_is_dirty_) engine_->reset();
  engine_is_dirty_ = false;
  for (const auto& generation : work.submitted) start(generation);
  if (work.some_cancelled) stop_cancelled();
  if (work.stopping) stop_all(FinishReason::kCancelled);
  publish();
  if (!choices_.empty()) step();
}

void EngineThread::drop_everything(const Work& work) noexcept {
  for (const auto& [queue, event] : events_) queue->run_out_of_memory();
  for (const auto& [id, choice] : choices_) choice.generation->answers->run_out_of_memory();
  for (const auto& generation : work.submitted) generation->answers->run_out_of_memory();
  events_.clear();
  scorings_.clear();
  choices_.clear();
  ids_.clear();
  engine_is_dirty_ = failure_.empty();
}

void EngineThread::start(const std::shared_ptr<Generation>& generation) {
  const GenerationParams& params = generation->params;
  Request request;
  request.id = ++last_id_;
  request.prompt = generation->prompt;
  request.sampling = params.sampling;
  request.dry_breakers = generation->dry_breakers;
  request.mask = generation->mask;
  request.max_new_tokens = params.max_tokens;
  request.ignore_eog = params.ignore_eog;
  request.stop_tokens = generation->rules.stop_tokens;
  request.max_drafts = params.max_drafts;
  request.max_running = generation->max_running;
  request.priority = params.priority;
  request.cache_salt = params.cache_salt;
  request.reuse_prefix = params.reuse_prefix;
  request.report_logits = params.top_logprobs.has_value();
  if (generation->prompt_scores) request.logits_from = 0;
  request.pooling = generation->pooling;
  std::vector<RequestId>& ids = ids_[generation.get()];
  ids.push_back(request.id);
  for (int32_t i = 1; i < params.n; ++i) ids.push_back(++last_id_);
  // Choices differ only in their sampled tokens; a request without any needs one choice.
  if (params.max_tokens != 0) request.choices.assign(ids.begin() + 1, ids.end());
  for (int32_t i = 0; i < params.n; ++i) {
    Choice choice{generation, i,  AnswerText(engine_->tokenizer(), generation->rules, generation->first_choice + i),
                  {},         {}, 0,
                  false,      {}, {},
                  {},         {}};
    choice.times.arrived = generation->arrived;
    choices_.emplace(ids[static_cast<size_t>(i)], std::move(choice));
  }
  std::string error = failure_;
  try {
    if (error.empty() && !engine_->submit(std::move(request))) error = "[engine] the queue is full";
  } catch (const Error& refused) {
    error = refused.what();
  }
  if (!error.empty()) stop(generation, FinishReason::kError, error);
}

void EngineThread::stop_cancelled() {
  const auto is_cancelled = [](const auto& entry) { return entry.second.generation->cancelled.load(); };
  for (;;) {
    const auto found = std::find_if(choices_.begin(), choices_.end(), is_cancelled);
    if (found == choices_.end()) return;
    stop(std::shared_ptr<Generation>(found->second.generation), FinishReason::kCancelled);
  }
}

void EngineThread::stop_all(FinishReason reason, const std::string& error) {
  while (!choices_.empty()) stop(std::shared_ptr<Generation>(choices_.begin()->second.generation), reason, error);
}

void EngineThread::stop(const std::shared_ptr<Generation>& generation, FinishReason reason, const std::string& error) {
  const auto found = ids_.find(generation.get());
  if (found == ids_.end()) return;
  for (const RequestId id : std::vector<RequestId>(found->second)) {
    if (failure_.empty()) engine_->cancel(id, reason);
    Choice& choice = choices_.at(id);
    AnswerEvent event;
    event.finished = reason;
    event.error = error;
    choice.text.finish(event.delta, true);
    finish(id, choice, std::move(event));
  }
}

void EngineThread::step() {
  const Clock::time_point before = Clock::now();
  const std::vector<Progress> progress = engine_->step();
  score(progress);
  metrics_.batch_size.observe(engine_->last_step().sequences);
  for (const Progress& p : progress) take_progress(p, before);
  publish();
}

void EngineThread::take_logits(RequestId id, int64_t position, std::span<const float> logits) {
  const auto found = choices_.find(id);
  if (found == choices_.end()) return;
  Choice& choice = found->second;
  const Generation& generation = *choice.generation;
  if (!generation.params.top_logprobs) return;
  const int64_t n_prompt = static_cast<int64_t>(generation.prompt.size());
  if (position + 1 >= n_prompt) choice.rows[position] = logits;
  if (!generation.prompt_scores || choice.index != 0 || position >= n_prompt) return;
  // A prompt's rows come in order, and again after a preemption.
  auto& scores = choice.prompt_scores;
  if (scores.empty()) scores.push_back({generation.prompt[0], std::nullopt, {}});
  if (position + 1 < n_prompt && static_cast<int64_t>(scores.size()) == position + 1) {
    const TokenId next = generation.prompt[static_cast<size_t>(position + 1)];
    scores.push_back({next, std::nullopt, {}});  // filled in by score()
    scorings_.push_back({&choice, position, logits, next, true, {}, ""});
  }
}

void EngineThread::score(const std::vector<Progress>& progress) {
  for (const Progress& p : progress) {
    const auto found = choices_.find(p.id);
    if (found == choices_.end()) continue;
    Choice& choice = found->second;
    int64_t position = static_cast<int64_t>(choice.generation->prompt.size()) + choice.n_tokens - 1;
    for (const TokenId token : p.tokens) {
      const auto row = choice.rows.find(position);
      if (row != choice.rows.end()) scorings_.push_back({&choice, position, row->second, token, false, {}, ""});
      ++position;
    }
    choice.rows.clear();
  }
  engine_->runner().parallel_for(static_cast<int64_t>(scorings_.size()), [&](int64_t i, int) {
    Scoring& s = scorings_[static_cast<size_t>(i)];
    try {
      const auto n_top = static_cast<size_t>(*s.choice->generation->params.top_logprobs);
      TokenLogprobs scored = token_logprobs(s.logits, s.token, n_top);
      s.result = {s.token, scored.logprob, std::move(scored.top)};
    } catch (const Error& error) {
      s.error = error.what();
    }
  });
  for (Scoring& s : scorings_) {
    if (!s.error.empty()) s.choice->error = s.error;
    if (s.of_prompt) s.choice->prompt_scores[static_cast<size_t>(s.position + 1)] = std::move(s.result);
    else s.choice->scores[s.position] = std::move(s.result);
  }
  scorings_.clear();
}

// Adds the tokens of a step to the choice's text, with their log-probabilities.
void EngineThread::add_tokens(Choice& choice, const Progress& progress, AnswerEvent& event) {
  std::vector<std::optional<TokenScore>> scores(choice.scores.empty() ? 0 : progress.tokens.size());
  const int64_t first = static_cast<int64_t>(choice.generation->prompt.size()) + choice.n_tokens - 1;
  for (size_t i = 0; i < scores.size(); ++i) {
    const auto scored = choice.scores.find(first + static_cast<int64_t>(i));
    if (scored != choice.scores.end()) scores[i] = std::move(scored->second);
  }
  choice.scores.clear();
  if (choice.n_tokens == 0 && !progress.tokens.empty()) choice.times.first_token = Clock::now();
  event.new_tokens = static_cast<int32_t>(
      choice.text.add(progress.tokens, progress.finished == FinishReason::kEndOfGeneration, event.delta, scores));
  choice.n_tokens += event.new_tokens;
  metrics_.generated_tokens += static_cast<uint64_t>(event.new_tokens);
}

// Filled in for the first event after the prompt, for the generation's first choice.
void EngineThread::report_prompt(Choice& choice, const Progress& progress, AnswerEvent& event) {
  event.prompt_tokens = progress.prompt_tokens;
  event.cached_tokens = progress.cached_tokens;
  event.prompt_scores = std::move(choice.prompt_scores);
  metrics_.prompt_tokens += static_cast<uint64_t>(progress.prompt_tokens);
  metrics_.cached_tokens += static_cast<uint64_t>(progress.cached_tokens);
  metrics_.prompt_length.observe(static_cast<double>(progress.prompt_tokens));
}

void EngineThread::take_progress(const Progress& progress, Clock::time_point before) {
  const auto found = choices_.find(progress.id);
  if (found == choices_.end()) return;
  Choice& choice = found->second;
  Generation& generation = *choice.generation;
  const GenerationParams& params = generation.params;
  if (progress.finished == FinishReason::kError || !choice.error.empty()) {
    // Other choices may not even have started.
    const std::string error = choice.error.empty() ? progress.error : choice.error;
    stop(std::shared_ptr<Generation>(choice.generation), FinishReason::kError, error);
    return;
  }
  AnswerEvent event;
  if (choice.times.started == Clock::time_point()) {
    choice.times.started = before;
    if (choice.index == 0 && generation.ticket) generation.ticket->started(progress.prompt_tokens);
    if (choice.index == 0) metrics_.queue_time.observe(progress.queue_seconds);
  }
  add_tokens(choice, progress, event);
  choice.drafts = progress.drafts;
  event.finished = progress.finished;
  event.embedding = progress.pooled;
  if (choice.text.stopped() && progress.finished == FinishReason::kNone) {
    engine_->cancel(progress.id, FinishReason::kStopString);
  }
  if (choice.text.stopped()) event.finished = FinishReason::kStopString;
  const bool prompt_done = event.new_tokens > 0 || event.finished != FinishReason::kNone;
  if (choice.index == 0 && prompt_done && !std::exchange(choice.reported_prompt, true)) {
    report_prompt(choice, progress, event);
  }
  if (event.finished == FinishReason::kNone) {
    event.choice = generation.first_choice + choice.index;
    if (!event.delta.empty() || event.new_tokens > 0) events_.emplace_back(generation.answers, std::move(event));
    return;
  }
  const bool cut_off = event.finished == FinishReason::kMaxTokens || event.finished == FinishReason::kContextFull;
  choice.text.finish(event.delta, cut_off);
  if (params.max_tokens == 0) {
    const std::vector<RequestId> ids = ids_.at(&generation);
    for (const RequestId id : ids) {
      if (id == progress.id) continue;
      AnswerEvent same;
      same.finished = event.finished;
      finish(id, choices_.at(id), std::move(same));
    }
  }
  finish(progress.id, choice, std::move(event));
}

void EngineThread::finish(RequestId id, Choice& choice, AnswerEvent event) {
  const std::shared_ptr<Generation> generation = choice.generation;
  choice.times.ended = Clock::now();
  const AnswerTimes& times = choice.times;
  event.choice = generation->first_choice + choice.index;
  event.times = times;
  event.drafts = choice.drafts;
  std::string reason(finish_reason_name(event.finished));
  std::replace(reason.begin(), reason.end(), ' ', '_');
  metrics_.finished.add(reason);
  if (choice.n_tokens > 0) {
    metrics_.time_to_first_token.observe(seconds(times.first_token - times.arrived));
    metrics_.output_length.observe(static_cast<double>(choice.n_tokens));
  }
  if (choice.n_tokens > 1) {
    metrics_.time_per_output_token.observe(seconds(times.ended - times.first_token) /
                                           static_cast<double>(choice.n_tokens - 1));
  }
  auto& ids = ids_.at(generation.get());
  std::erase(ids, id);
  choices_.erase(id);
  if (ids.empty()) ids_.erase(generation.get());
  if (generation->ticket) generation->ticket->finished();
  events_.emplace_back(generation->answers, std::move(event));
}

void EngineThread::publish() {
  const Scheduler& scheduler = engine_->scheduler();
  EngineGauges g;
  g.running = static_cast<int64_t>(scheduler.running().size());
  g.waiting = static_cast<int64_t>(scheduler.waiting().size());
  g.cache_groups = cache_group_gauges(scheduler.cache());
  g.preemptions = scheduler.stats().preemptions;
  g.prefix_hit_tokens = scheduler.stats().prefix_hit_tokens;
  g.admitted_tokens = scheduler.stats().admitted_tokens;
  g.steps = scheduler.stats().steps;
  const PlanCache& plans = engine_->runner().plans();
  for (size_t i = 0; i < plans.fallbacks().size(); ++i) {
    g.fallbacks.push_back({fallback_text(plans.fallbacks()[i]), plans.fallback_runs()[i]});
  }
  const Speculator* speculator = engine_->speculator();
  if (speculator && (speculator->options().any() || scheduler.stats().drafts.proposed > 0)) {
    DraftGauges& drafts = g.drafts.emplace();
    drafts.counts = scheduler.stats().drafts;
    drafts.decode_tokens = engine_->stats().decode_tokens;
    drafts.decode_rounds = engine_->stats().decode_rounds;
    if (speculator->draft()) drafts.cache_groups = cache_group_gauges(speculator->draft()->scheduler().cache());
  }
  metrics_.set_gauges(g);
  for (auto& [queue, event] : events_) queue->push(std::move(event));
  events_.clear();
}

}  // namespace infer
