// A random driver: requests with shared prefixes, several choices, priorities, drafts, forks, conversations,
// cancellations and too few blocks, on every mix of cache groups. After every step the reference counts must add up in
// each group, every token must see the right cache entries (FakeModel), and every text must be the one that the model
// gives without a cache.
#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>

#include "src/engine/scheduler.h"
#include "tests/unit/engine/fake_model.h"

using namespace infer;
using namespace infer::test;

// REQUIRE for conditions that are checked millions of times: only a failure pays for its report.
#define HOLDS(...)                            \
  do {                                        \
    if (!(__VA_ARGS__)) REQUIRE(__VA_ARGS__); \
  } while (false)

namespace {

struct Setting {
  const char* name;
  std::vector<CacheGroup> groups;
  int32_t budget, sequences, outputs;
  int64_t context;
  int steps;
  int traits = 0;
};
constexpr int kPreempts = 1;     // blocks run out while texts are generated
constexpr int kFewPlaces = 2;    // too few sequences at once, so that choices wait
constexpr int kNoSpareSlot = 4;  // one sequence at a time, no checkpoints, no drafts

class Driver {
 public:
  Driver(const Setting& setting, uint32_t seed) : random_(seed), groups_(setting.groups) {
    config_.token_budget = setting.budget, config_.max_sequences = setting.sequences;
    config_.max_outputs = setting.outputs, config_.max_waiting = 12;
    config_.max_context = setting.context, config_.n_vocab = kVocab, config_.eog_tokens = {kEog};
    max_known_ = setting.context;
    for (const CacheGroup& group : groups_) max_known_ = std::min(max_known_, most_tokens(group));
    scheduler_ = std::make_unique<Scheduler>(config_, groups_, PrefixHasher({seed, 7}));
    model_ = std::make_unique<FakeModel>(groups_, kVocab);
  }

  void act() {
    const bool quiet = n_steps_++ % 4000 >= 2500;  // sometimes the queue becomes empty, and conversations retain blocks
    if (chance(quiet ? 3 : 25)) add_request();
    for (const Sequence* s : scheduler_->running()) {
      if (chance(30)) propose(*s);
      if (chance(1)) forks_.push_back(s->id());
    }
    for (const RequestId parent : forks_) fork(parent);
    forks_.clear();
    if (chance(2)) cancel();
    step();
  }

  void drain() {
    for (int i = 0; !scheduler_->idle(); ++i) {
      HOLDS(i < 20000);
      REQUIRE(step());  // something is computed if any sequence waits or runs
    }
    for (uint64_t conversation = 1; conversation <= kConversations; ++conversation) scheduler_->forget(conversation);
    CHECK(scheduler_->cache().retained().empty());
    for (size_t g = 0; g < groups_.size(); ++g) CHECK(scheduler_->cache().pool(g).stats().used == 0);
    CHECK(n_added_ == n_taken_);
    CHECK(future_choices_.empty());
  }

  const SchedulerStats& stats() const { return scheduler_->stats(); }
  int64_t evictions(size_t group) const { return scheduler_->cache().pool(group).stats().evictions; }
  int64_t n_replayed() const { return n_replayed_; }
  int64_t n_hits() const { return n_hits_; }
  int64_t n_window_hits() const { return n_window_hits_; }
  int64_t n_taken() const { return n_taken_; }
  int64_t n_forked() const { return n_forked_; }
  int64_t n_copies() const { return n_copies_; }
  int64_t n_continued() const { return n_continued_; }
  int64_t n_choices() const { return n_choices_; }
  int64_t n_choices_waited() const { return n_choices_waited_; }
  int64_t n_cancelled_in_prompt() const { return n_cancelled_in_prompt_; }
  int64_t n_overtaken() const { return n_overtaken_; }
  int64_t longest_wait() const { return longest_wait_; }  // in steps, of any sequence for its next token

 private:
  static constexpr size_t kVocab = 50;
  static constexpr uint64_t kConversations = 3;

  // The blocks of a sequence that is alone. A window needs as many as it can touch wherever it begins.
  static int64_t most_tokens(const CacheGroup& group) {
    const int64_t all = group.n_blocks * kBlockTokens;
    if (group.kind == CacheKind::kState) return INT64_MAX;
    if (group.kind != CacheKind::kWindow) return all;
    for (int64_t begin = 0; begin < kBlockTokens; ++begin) {
      if ((begin + group.window - 1) / kBlockTokens + 1 > group.n_blocks) return all;
    }
    return INT64_MAX;
  }

  bool chance(int percent) { return static_cast<int>(random_() % 100) < percent; }
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

  // The expected state of a request, tracked independently of the scheduler.
  struct Expectation {
    std::vector<TokenId> text;  // prompt and answer
    bool cancelled = false;
    int64_t next = 0;   // position that must be computed next; 0 after a (re)start
    int64_t known = 0;  // after the last step
    int32_t preemptions = 0;
    bool started = false;
    int64_t n_idle = 0;  // steps since it was last given a token
  };

  void expect(const Request& r) {
    Expectation e;
    e.text = model_->expected(r.prompt, r.max_new_tokens, r.ignore_eog, max_known_, r.id);
    expected_.emplace(r.id, std::move(e));
    ++n_added_;
  }

  void add_request() {
    Request r;
    r.id = next_id_++;
    const int64_t length = 1 + below(chance(20) ? max_known_ - 1 : std::min<int64_t>(max_known_ - 1, 100));
    const uint64_t family = random_() % 4;  // prompts of one family have a common prefix
    const int64_t shared = below(length + 1);
    for (int64_t i = 0; i < length; ++i) {
      r.prompt.push_back(static_cast<TokenId>((i < shared ? mix(family, i) : random_()) % kVocab));
    }
    if (chance(40)) {
      // Continues the text with which a request of the conversation ended, or the beginning of it.
      r.conversation = 1 + random_() % kConversations;
      const auto& text = texts_[r.conversation];
      const int64_t kept =
          chance(70) ? static_cast<int64_t>(text.size()) : below(static_cast<int64_t>(text.size()) + 1);
      r.prompt.insert(r.prompt.begin(), text.begin(), text.begin() + kept);
      if (static_cast<int64_t>(r.prompt.size()) >= max_known_) r.prompt.resize(static_cast<size_t>(max_known_ - 1));
    }
    r.max_new_tokens = chance(5) ? -1 : static_cast<int32_t>(below(80));
    r.ignore_eog = chance(10);
    r.priority = chance(10) ? 1 : 0;
    r.reuse_prefix = !chance(5);
    r.logits_from = chance(5) ? below(length + 1) : -1;
    r.cache_salt = chance(10) ? "salt" : "";
    r.sampling.seed = r.id;
    if (r.max_new_tokens != 0 && chance(20)) {
      for (int64_t i = 1 + below(4); i > 0; --i) r.choices.push_back(next_id_++);
    }
    if (!scheduler_->add(r)) return;
    expect(r);
    for (const RequestId id : r.choices) future_choices_.emplace(id, r);
  }

  void propose(const Sequence& s) {
    // The correct continuation as far as it is known, sometimes with an error.
    const auto& text = expected_.at(s.id()).text;
    std::vector<TokenId> drafts;
    for (int64_t i = s.known(); i < static_cast<int64_t>(text.size()) && drafts.size() < 8; ++i)
      drafts.push_back(text[i]);
    for (TokenId& t : drafts) {
      if (chance(15)) t = static_cast<TokenId>(random_() % kVocab);
    }
    if (chance(20)) drafts.push_back(3);
    scheduler_->propose(s.id(), drafts);
  }

  void fork(RequestId parent_id) {
    const Sequence& parent = *scheduler_->find(parent_id);
    if (!parent.wants_tokens() || scheduler_->waiting().size() > 20) return;
    // Right after its prompt, or later in its answer.
    const int64_t n_shared = chance(50) ? parent.prompt_length()
                                        : parent.prompt_length() + below(parent.known() - parent.prompt_length() + 1);
    if (n_shared >= static_cast<int64_t>(expected_.at(parent_id).text.size())) return;
    Request r = parent.request();
    r.choices.clear();
    r.id = next_id_++;
    std::vector<TokenId> begin(parent.tokens().begin(), parent.tokens().begin() + n_shared);
    const TokenId next = model_->draw(r.id, hash_of(begin));
    scheduler_->fork(parent_id, r.id, parent.sampler().for_choice(1), n_shared, next);
    // The answer begins after the prompt; the shared part of it counts.
    Expectation e;
    const int32_t left =
        r.max_new_tokens < 0 ? -1 : r.max_new_tokens - static_cast<int32_t>(n_shared - parent.prompt_length());
    e.text = model_->expected(begin, left, r.ignore_eog, max_known_, r.id);
    if (scheduler_->find(r.id)->state() == SequenceState::kRunning) e.started = true, e.next = n_shared;
    expected_.emplace(r.id, std::move(e));
    ++n_added_;
    ++n_forked_;
  }

  void expect_choices(std::span<const Choice> choices) {
    for (const Choice& choice : choices) {
      const auto future = future_choices_.find(choice.id);
      const Sequence* s = scheduler_->find(choice.id);
      HOLDS((s != nullptr) == (future != future_choices_.end()));
      if (!s) continue;
      Request r = future->second;
      future_choices_.erase(future);
      r.id = choice.id;
      expect(r);
      ++n_choices_;
      if (s->state() == SequenceState::kRunning) {
        expected_.at(r.id).started = true, expected_.at(r.id).next = static_cast<int64_t>(r.prompt.size());
        HOLDS(s->computed() == static_cast<int64_t>(r.prompt.size()));
      } else if (s->state() == SequenceState::kWaiting) {
        ++n_choices_waited_;
      }
    }
  }

  void cancel() {
    if (!future_choices_.empty() && chance(20)) {
      const RequestId id = future_choices_.begin()->first;
      scheduler_->finish(id, FinishReason::kCancelled);
      future_choices_.erase(id);
      return;
    }
    if (expected_.empty()) return;
    auto it = expected_.begin();
    std::advance(it, below(static_cast<int64_t>(expected_.size())));
    const Sequence& s = *scheduler_->find(it->first);
    if (s.state() == SequenceState::kFinished) return;
    it->second.cancelled = true;
    n_cancelled_in_prompt_ += s.computed() > 0 && s.computed() < s.prompt_length();
    for (const RequestId choice : s.request().choices) future_choices_.erase(choice);
    scheduler_->finish(it->first, FinishReason::kCancelled);
  }

  bool step() {
    std::vector<RequestId> decodes;
    for (const Sequence* s : scheduler_->running()) {
      if (s->remaining() == 1) decodes.push_back(s->id());
    }
    const bool limited = chance(decodes.empty() ? 3 : 30);
    const int32_t prompt_budget = limited ? static_cast<int32_t>(1 + below(config_.token_budget)) : INT32_MAX;
    const StepPlan plan = scheduler_->schedule(prompt_budget);
    check_plan(plan, decodes, prompt_budget);
    bool computed = !plan.empty();
    if (computed) {
      n_copies_ += static_cast<int64_t>(plan.copies.size());
      model_->copy(plan);
      std::vector<std::vector<TokenId>> sampled;
      for (const auto& s : plan.sequences) sampled.push_back(model_->run(s, s.sequence->id()));
      std::vector<Choice> choices = model_->draw_choices(plan);
      if (chance(1)) cancel();  // while the step is in flight
      scheduler_->commit(plan, sampled, choices);
      expect_choices(choices);
    }
    check_books();
    take_finished();
    return computed;
  }

  void check_plan(const StepPlan& plan, const std::vector<RequestId>& decodes, int32_t prompt_budget) {
    HOLDS(plan.n_tokens <= config_.token_budget);
    HOLDS(plan.n_outputs <= config_.max_outputs);
    HOLDS(plan.sequences.size() <= static_cast<size_t>(config_.max_sequences));
    int32_t tokens = 0, outputs = 0, decode_tokens = 0;
    std::set<RequestId> scheduled;
    for (const ScheduledSequence& entry : plan.sequences) {
      const Sequence& s = *entry.sequence;
      REQUIRE(scheduled.insert(s.id()).second);
      HOLDS(s.state() == SequenceState::kRunning);
      HOLDS(entry.n_tokens >= 1);
      HOLDS(entry.first_position + entry.n_tokens <= static_cast<int64_t>(s.tokens().size()));
      HOLDS(entry.n_drafts == static_cast<int32_t>(s.drafts().size()));
      HOLDS((!entry.samples || entry.first_output <= entry.first_sampled_row()));
      tokens += entry.n_tokens;
      if (std::find(decodes.begin(), decodes.end(), s.id()) != decodes.end()) decode_tokens += entry.n_tokens;
      outputs += entry.n_tokens - entry.first_output;
      // Each token is computed once per start: from where the last step ended, or from the end of cached blocks.
      Expectation& e = expected_.at(s.id());
      if (!e.started || e.preemptions != s.preemptions()) {
        if (entry.first_position % kBlockTokens != 0) {
          HOLDS(s.request().conversation != 0);
          ++n_continued_;
        } else if (entry.first_position > 0) {
          count_hit(s);
        }
        e.started = true, e.preemptions = s.preemptions();
      } else {
        HOLDS(entry.first_position == e.next);
      }
      HOLDS(entry.first_position == s.computed());
    }
    // In ascending rank, and no rank twice.
    const auto running = scheduler_->running();
    for (size_t i = 1; i < running.size(); ++i) {
      HOLDS(running[i - 1]->before(*running[i]));
      n_overtaken_ += running[i - 1]->request().priority > running[i]->request().priority;
    }
    HOLDS(tokens == plan.n_tokens);
    HOLDS(tokens - decode_tokens <= prompt_budget);
    HOLDS(outputs == plan.n_outputs);
    for (auto& [id, e] : expected_) {
      const bool waits = !scheduled.contains(id) && scheduler_->find(id)->state() != SequenceState::kFinished;
      e.n_idle = waits && !plan.empty() ? e.n_idle + 1 : 0;
      longest_wait_ = std::max(longest_wait_, e.n_idle);
    }
    for (const RequestId id : decodes) {  // decodes never starve
      HOLDS((scheduled.contains(id) || scheduler_->find(id)->state() == SequenceState::kWaiting));
    }
  }

  void count_hit(const Sequence& s) {
    ++n_hits_;
    for (size_t g = 0; g < groups_.size(); ++g) {
      n_window_hits_ += groups_[g].kind == CacheKind::kWindow && s.cache().table(g)[0] == kNoBlock;
    }
  }

  // Every block in use occurs in the tables of running sequences and conversations as often as it has references.
  void check_books() {
    for (size_t g = 0; g < groups_.size(); ++g) {
      std::map<BlockId, int> held;
      const auto count = [&](std::span<const BlockId> table) {
        for (const BlockId block : table) {
          if (block != kNoBlock) ++held[block];
        }
      };
      for (const Sequence* s : scheduler_->running()) count(s->cache().table(g));
      for (const RetainedConversation& kept : scheduler_->cache().retained()) count(kept.tables[g].blocks);
      const BlockPool& pool = scheduler_->cache().pool(g);
      const auto stats = pool.stats();
      HOLDS(stats.used == static_cast<int32_t>(held.size()));
      HOLDS(stats.used + stats.cached + stats.free == groups_[g].n_blocks);
      for (const auto& [block, n] : held) HOLDS(pool.references(block) == n);
    }
    for (const Sequence* s : scheduler_->running()) {
      HOLDS(s->remaining() >= 1);
      HOLDS(s->drafts().empty());
      Expectation& e = expected_.at(s->id());
      n_replayed_ += s->remaining() > 1 && s->known() > e.known && !s->generated().empty();
      e.next = s->computed();
      e.known = s->known();
      for (size_t g = 0; g < groups_.size(); ++g) check_table(*s, g);
      if (random_() % 16 == 0) model_->check_visible(*s, s->computed());
    }
    for (const Sequence* s : scheduler_->waiting()) {
      for (size_t g = 0; g < groups_.size(); ++g) HOLDS(s->cache().table(g).empty());
    }
  }

  // A table covers the computed tokens, and has no block that is no longer needed.
  void check_table(const Sequence& s, size_t g) {
    const auto table = s.cache().table(g);
    if (groups_[g].kind == CacheKind::kState) {
      HOLDS(table.size() == 1);
      return;
    }
    HOLDS(static_cast<int64_t>(table.size()) >= blocks_for(s.computed()));
    HOLDS(static_cast<int64_t>(table.size()) <= blocks_for(s.known()));
    const int64_t seen = groups_[g].kind == CacheKind::kWindow ? s.computed() - groups_[g].window + 1 : 0;
    bool right = true;
    for (int64_t i = 0; i < static_cast<int64_t>(table.size()); ++i) {
      right = right && (table[i] == kNoBlock) == ((i + 1) * kBlockTokens <= seen);
    }
    HOLDS(right);
  }

  void take_finished() {
    for (auto it = expected_.begin(); it != expected_.end();) {
      const auto& [id, e] = *it;
      const Sequence* s = scheduler_->find(id);
      HOLDS(s);
      if (s->state() != SequenceState::kFinished) {
        ++it;
        continue;
      }
      const auto text = s->known_tokens();
      HOLDS(text.size() <= e.text.size());
      HOLDS(std::equal(text.begin(), text.end(), e.text.begin()));
      if (!e.cancelled) HOLDS(text.size() == e.text.size());
      HOLDS((s->finish_reason() == FinishReason::kCancelled) == e.cancelled);
      if (s->request().conversation != 0) texts_[s->request().conversation].assign(text.begin(), text.end());
      scheduler_->take(id);
      ++n_taken_;
      it = expected_.erase(it);
    }
  }

  std::mt19937_64 random_;
  SchedulerConfig config_;
  std::vector<CacheGroup> groups_;
  int64_t max_known_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<FakeModel> model_;
  std::map<RequestId, Expectation> expected_;
  std::map<RequestId, Request> future_choices_;  // with the request they belong to
  std::vector<RequestId> forks_;
  std::map<uint64_t, std::vector<TokenId>> texts_;  // the last texts of the conversations
  RequestId next_id_ = 1;
  int64_t n_steps_ = 0, n_added_ = 0, n_taken_ = 0, n_forked_ = 0, n_copies_ = 0, n_continued_ = 0;
  int64_t n_choices_ = 0, n_choices_waited_ = 0, n_cancelled_in_prompt_ = 0, n_overtaken_ = 0;
  int64_t n_hits_ = 0, n_window_hits_ = 0;  // starts from published blocks, and those without the first block
  int64_t n_replayed_ = 0;                  // steps with rejected drafts after which tokens had to be computed again
  int64_t longest_wait_ = 0;
};

const Setting kSettings[] = {
    {"plenty of blocks", {full_group(200)}, 64, 8, 32, 256, 20000},
    {"few blocks", {full_group(14)}, 48, 8, 16, 256, 40000, kPreempts},
    {"barely one sequence", {full_group(4)}, 16, 6, 8, 200, 30000, kPreempts | kFewPlaces},
    {"two groups, smallest budget", {full_group(10), full_group(9)}, 5, 5, 5, 160, 20000, kPreempts},
    {"latent", {latent_group(14)}, 48, 8, 16, 256, 20000, kPreempts},
    {"full and window", {full_group(40), window_group(20, 40)}, 48, 8, 16, 256, 15000},
    {"full and window, few blocks", {full_group(14), window_group(12, 33)}, 48, 8, 16, 256, 15000, kPreempts},
    {"a small window, smallest budget", {window_group(12, 2), full_group(9)}, 5, 5, 5, 160, 15000, kPreempts},
    {"full and state", {full_group(60), state_group(20)}, 48, 8, 16, 256, 15000},
    {"full and state, few blocks", {full_group(14), state_group(9)}, 48, 8, 16, 256, 40000, kPreempts},
    {"full, window and state", {full_group(60), window_group(24, 70), state_group(24)}, 64, 8, 32, 256, 15000},
    {"a window that is never full, one slot",
     {window_group(3, 90), state_group(1)},
     16,
     4,
     8,
     256,
     15000,
     kNoSpareSlot},
};

bool has(const Setting& setting, CacheKind kind) {
  return std::any_of(setting.groups.begin(), setting.groups.end(), [&](auto& group) { return group.kind == kind; });
}

// The events that must have occurred for the checks to be meaningful.
void check_coverage(const Setting& setting, const Driver& driver) {
  const SchedulerStats& stats = driver.stats();
  CHECK(driver.n_taken() > 1000);
  CHECK(driver.n_forked() > 50);
  CHECK(driver.n_choices() > 100);
  CHECK(driver.n_cancelled_in_prompt() > 2);
  CHECK(driver.longest_wait() < 4000);  // no starvation, although there is always more work than a step can do
  if (setting.traits & kNoSpareSlot) return;
  CHECK(driver.n_copies() > 10);
  CHECK(driver.n_continued() > 5);
  CHECK(driver.n_overtaken() > 100);
  CHECK(driver.n_hits() > 50);
  CHECK(stats.drafts.accepted > 200);
  CHECK(stats.drafts.proposed > stats.drafts.accepted);
  for (size_t g = 0; g < setting.groups.size(); ++g) CHECK(driver.evictions(g) > 100);
  if (!(setting.traits & kFewPlaces)) CHECK(driver.n_choices_waited() > 10);
  if (setting.traits & kPreempts) CHECK(stats.preemptions > 20);
  if (has(setting, CacheKind::kWindow)) CHECK(driver.n_window_hits() > 20);
  if (has(setting, CacheKind::kState)) CHECK(driver.n_replayed() > 50);
}

}  // namespace

TEST_CASE("random_driver_upholds_every_guarantee") {
  for (const Setting& setting : kSettings) {
    CAPTURE(std::string(setting.name));
    Driver driver(setting, 11);
    for (int i = 0; i < setting.steps; ++i) driver.act();
    driver.drain();
    check_coverage(setting, driver);
  }
}
