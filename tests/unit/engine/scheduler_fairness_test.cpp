// How many steps requests wait: short prompts do not wait for long ones, and no request waits forever.
#include <doctest/doctest.h>

#include "tests/unit/engine/scheduler_world.h"

using namespace infer;
using namespace infer::test;

namespace {

SchedulerConfig wide_config(int32_t max_sequences = 8) {
  SchedulerConfig config = small_config();
  config.max_sequences = max_sequences, config.max_context = 4096, config.max_waiting = 64;
  return config;
}

constexpr int32_t kBudget = 64;  // tokens of a step, as small_config() has them

// The number of steps until a sequence has sampled its first token. Calls `before_step` before each.
template <typename F>
int steps_to_first_token(World& w, RequestId id, F before_step) {
  for (int steps = 0;; ++steps) {
    if (!w.sequence(id).generated().empty()) return steps;
    REQUIRE(steps < 20000);
    before_step();
    w.step();
  }
}
int steps_to_first_token(World& w, RequestId id) {
  return steps_to_first_token(w, id, [] {});
}

}  // namespace

TEST_CASE("a_short_prompt_does_not_wait_for_long_ones_that_run_or_wait") {
  for (const bool late : {false, true}) {
    CAPTURE(late);
    World w(1000, wide_config());
    for (RequestId id = 1; id <= 3; ++id) w.add(request(id, text(3000, 10 * static_cast<int>(id))));
    if (late) w.step(), w.step();
    w.add(request(4, text(5, 70)));
    CHECK(steps_to_first_token(w, 4) == 1);
  }
}

TEST_CASE("long_prompts_lose_no_tokens_to_the_short_ones_order") {
  World w(1000, wide_config());
  for (RequestId id = 1; id <= 3; ++id) w.add(request(id, text(1000, 10 * static_cast<int>(id)), 1));
  for (RequestId id = 4; id <= 7; ++id) w.add(request(id, text(20, 50 + static_cast<int>(id)), 1));
  while (!w.scheduler.idle()) {
    const StepPlan plan = w.step();
    CHECK((plan.n_tokens == kBudget || w.scheduler.idle()));
  }
  CHECK(w.scheduler.stats().steps == (3 * 1000 + 4 * 20 + kBudget - 1) / kBudget);
}

TEST_CASE("a_long_prompt_gets_a_quarter_of_every_step_however_many_short_ones_come") {
  World w(1000, wide_config());
  w.add(request(1, text(3000), 1));
  RequestId next = 2;
  const int steps = steps_to_first_token(w, 1, [&] {
    for (; w.scheduler.waiting().size() < 4; ++next) w.add(request(next, text(30, static_cast<int>(next)), 1));
  });
  CHECK(steps <= 3000 / (kBudget / 4) + 1);
  CHECK(next > 2 * 100);  // and the short ones advanced
}

TEST_CASE("prompts_advance_despite_decodes_with_a_budget_of_one_token") {
  World w(1000, wide_config());
  const auto step = [&] {
    const StepPlan plan = w.scheduler.schedule(1);
    std::vector<std::vector<TokenId>> sampled;
    for (const auto& s : plan.sequences) sampled.push_back(w.model.run(s, s.sequence->id()));
    w.scheduler.commit(plan, sampled);
  };
  w.add(request(1, text(4), 3000));
  step();
  w.add(request(2, text(400, 20), 1));
  step();
  w.add(request(3, text(5, 40), 1));
  int steps = 0;
  for (; w.sequence(3).generated().empty(); ++steps) {
    REQUIRE(steps < 1000);
    step();
  }
  CHECK(steps <= 10);
  for (; w.sequence(2).generated().empty(); ++steps) {
    REQUIRE(steps < 1000);
    step();
  }
}

TEST_CASE("prompts_of_similar_length_wait_for_the_prefix_that_an_earlier_one_computes") {
  World w(1000, wide_config());
  for (RequestId id = 1; id <= 6; ++id) {
    std::vector<TokenId> prompt = text(1000);
    for (RequestId i = 0; i < 2 * id; ++i) prompt.push_back(static_cast<TokenId>(10 * id + i));
    w.add(request(id, prompt, 4));
  }
  w.drain();
  CHECK(w.scheduler.stats().computed_tokens < 1000 + 6 * (kBlockTokens + 12 + 4));
}

TEST_CASE("a_stream_of_higher_priority_does_not_delay_others_forever") {
  for (const int32_t places : {1, 4}) {
    CAPTURE(places);
    World w(1000, wide_config(places));
    RequestId next = 2;
    const auto keep_six_waiting = [&] {
      for (; w.scheduler.waiting().size() < 7; ++next) {
        Request urgent = request(next, text(30, static_cast<int>(next)), 20);
        urgent.priority = 10;
        w.add(urgent);
      }
    };
    keep_six_waiting();
    w.add(request(1, text(30, 7), 5));
    const int64_t before = w.scheduler.stats().computed_tokens;
    steps_to_first_token(w, 1, keep_six_waiting);
    const int64_t work = w.scheduler.stats().computed_tokens - before;
    CHECK(work > 9 * Scheduler::kTokensPerPriority);  // the priority has an effect
    // Requests that arrived before may still have to be served: those in the queue and those running.
    CHECK(work < 10 * Scheduler::kTokensPerPriority + (7 + places) * 50);
    CHECK(w.sequence(1).preemptions() == 0);
  }
}

TEST_CASE("choices_run_at_most_as_many_at_once_as_their_request_allows") {
  World w(200, wide_config());
  Request many = request(1, text(50), 40);
  many.choices = {2, 3, 4, 5, 6};
  many.max_running = 2;
  w.add(many);
  w.step();
  w.add(request(10, text(10, 30), 4));
  bool other_ran = false;
  while (!w.scheduler.idle()) {
    const auto running = w.scheduler.running();
    CHECK(std::count_if(running.begin(), running.end(), [](auto s) { return s->id() < 10; }) <= 2);
    other_ran = other_ran || running.size() == 3;
    w.step();
  }
  CHECK(other_ran);
  for (RequestId id = 1; id <= 6; ++id) {
    const auto expected = w.model.expected(text(50), 40, true, 4096, id);
    CHECK(std::equal(expected.begin(), expected.end(), w.sequence(id).known_tokens().begin(),
                     w.sequence(id).known_tokens().end()));
  }
}
