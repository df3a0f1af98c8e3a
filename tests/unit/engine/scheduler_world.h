// A scheduler with a fake model, stepped by the test. A sequence samples with its id as the seed.
#pragma once

#include <vector>

#include "src/engine/scheduler.h"
#include "tests/unit/engine/fake_model.h"

namespace infer::test {

inline SchedulerConfig small_config() {
  SchedulerConfig config;
  config.token_budget = 64, config.max_sequences = 4, config.max_outputs = 16, config.max_waiting = 8;
  config.max_context = 512, config.n_vocab = 100, config.eog_tokens = {kEog};
  return config;
}

// Tokens first, first + 1, ... within 1..99.
inline std::vector<TokenId> text(int n, int first = 1) {
  std::vector<TokenId> tokens(n);
  for (int i = 0; i < n; ++i) tokens[i] = 1 + (first + i) % 99;
  return tokens;
}

inline Request request(RequestId id, std::vector<TokenId> prompt, int32_t max_new = 8) {
  Request r;
  r.id = id, r.prompt = std::move(prompt), r.max_new_tokens = max_new, r.ignore_eog = true, r.sampling.seed = id;
  return r;
}

struct World {
  explicit World(int n_blocks = 64, SchedulerConfig config = small_config())
      : World(std::vector<CacheGroup>{full_group(n_blocks)}, config) {}
  World(const std::vector<CacheGroup>& groups, const SchedulerConfig& config)
      : scheduler(config, groups, PrefixHasher({1, 2})), model(groups, config.n_vocab) {}

  StepPlan step() {
    const StepPlan plan = scheduler.schedule();
    if (!plan.empty()) run(plan);
    return plan;
  }
  void run(const StepPlan& plan) {
    model.copy(plan);
    std::vector<std::vector<TokenId>> sampled;
    for (const auto& s : plan.sequences) sampled.push_back(model.run(s, s.sequence->id()));
    std::vector<Choice> choices = model.draw_choices(plan);
    scheduler.commit(plan, sampled, choices);
  }
  void drain() {
    for (int i = 0; !scheduler.idle(); ++i) {
      REQUIRE(i < 10000);
      REQUIRE_FALSE(step().empty());
    }
  }
  void add(Request r) {
    const bool queued = scheduler.add(std::move(r));
    REQUIRE(queued);
  }
  Sequence& sequence(RequestId id) { return *scheduler.find(id); }

  Scheduler scheduler;
  FakeModel model;
};

}  // namespace infer::test
