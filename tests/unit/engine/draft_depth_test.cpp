// The number of drafts on simulated machines: nothing here reads a clock.
#include "src/engine/draft/draft_depth.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "tests/unit/engine/engine_world.h"

using namespace infer;

namespace {

struct StepCosts {
  std::function<double(int sequences, int rows)> seconds;
  double noise = 0;  // standard deviation of a step, as a share of its time
};

struct Ran {
  double speed = 0;    // tokens per second, as a multiple of that without drafts
  double drafted = 0;  // drafts per sequence and step
};

// `n` sequences for as many steps; each draft is right with the probability that `acceptance` gives for the step.
Ran run(const StepCosts& costs, int n, int steps, const std::function<double(int step)>& acceptance,
        int available = 8) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform;
  std::normal_distribution<double> normal;
  DraftDepth depth;
  std::vector<AcceptanceRate> rates(static_cast<size_t>(n), AcceptanceRate(0.6));
  double seconds = 0, plain = 0;
  int64_t tokens = 0, drafted = 0;
  for (int step = 0; step < steps; ++step) {
    std::vector<DraftDepth::Candidate> candidates;
    for (const AcceptanceRate& rate : rates) candidates.push_back({rate.rate(), available});
    const std::vector<int> depths = depth.choose(n, candidates, n * (1 + available));
    int rows = n, made = n;
    for (int i = 0; i < n; ++i) {
      const int asked = depths[static_cast<size_t>(i)];
      int accepted = 0;
      while (accepted < asked && uniform(random) < acceptance(step)) ++accepted;
      rates[static_cast<size_t>(i)].record(accepted, asked);
      if (asked == 0) rates[static_cast<size_t>(i)].forget();
      rows += asked;
      made += accepted;
    }
    const double luck = std::max(0.2, 1 + costs.noise * normal(random)), took = costs.seconds(n, rows) * luck;
    depth.record(n, rows, made, took);
    seconds += took;
    plain += costs.seconds(n, n) * luck;  // of the same step without drafts
    tokens += made;
    drafted += rows - n;
  }
  const double plain_speed = n * steps / plain;
  return {static_cast<double>(tokens) / seconds / plain_speed, static_cast<double>(drafted) / (n * steps)};
}

std::function<double(int)> always(double acceptance) {
  return [acceptance](int) { return acceptance; };
}

// Steps of a costs limited by memory: rows cost little until there are many.
double memory_bound(int, int rows) { return 1 + 0.06 * (rows - 1); }
// Every row costs what the first one did.
double compute_bound(int, int rows) { return rows; }

}  // namespace

TEST_CASE("drafts that are right pay where rows are cheap") {
  const Ran ran = run({memory_bound}, 1, 2000, always(0.9));
  CHECK(ran.speed > 3.3);  // eight drafts: 6.1 tokens in 1.48
  CHECK(ran.drafted > 7);
  const Ran some = run({memory_bound}, 1, 2000, always(0.5));
  CHECK(some.speed > 1.45);  // three drafts: 1.875 tokens in 1.18
  CHECK(some.drafted < 5);
  CHECK(run({memory_bound}, 4, 2000, always(0.9)).speed > 2.15);  // six drafts: 20.9 tokens in 2.62, for 4 in 1.18
}

TEST_CASE("wrong drafts, or expensive rows, cost next to nothing") {
  for (const double noise : test::full() ? std::vector<double>{0.0, 0.1, 0.4} : std::vector<double>{0.0, 0.4}) {
    for (const int n : test::full() ? std::vector<int>{1, 2, 4, 16, 32} : std::vector<int>{1, 4, 16}) {
      CAPTURE(noise);
      CAPTURE(n);
      CHECK(run({memory_bound, noise}, n, 5000, always(0)).speed > 0.98);
      CHECK(run({compute_bound, noise}, n, 5000, always(0)).speed > 0.98);
      for (const double acceptance : {0.3, 0.6, 0.9}) {
        CAPTURE(acceptance);
        CHECK(run({memory_bound, noise}, n, 5000, always(acceptance)).speed > 0.98);
        CHECK(run({compute_bound, noise}, n, 5000, always(acceptance)).speed > 0.98);
      }
    }
  }
}

TEST_CASE("the depth follows a changing acceptance rate, down to nothing and back") {
  const auto acceptance = [](int step) { return step / 2000 % 2 == 0 ? 0.9 : 0.02; };
  const Ran ran = run({memory_bound, 0.1}, 1, 8000, acceptance);
  CHECK(ran.speed > 1.6);  // half of the steps at more than 3
  CHECK(run({memory_bound, 0.1}, 1, 8000, always(0.02)).drafted < 0.2);
}

TEST_CASE("no drafts before a step without them was measured, and no more than there are rows for") {
  DraftDepth depth;
  const std::vector<DraftDepth::Candidate> sure(3, {1.0, 8});
  CHECK(depth.choose(3, sure, 100) == std::vector<int>{0, 0, 0});
  for (int i = 0; i < 3; ++i) depth.record(3, 3, 3, 1);
  const std::vector<int> chosen = depth.choose(3, sure, 7);
  CHECK(chosen[0] + chosen[1] + chosen[2] == 4);
  CHECK(depth.choose(3, sure, 3) == std::vector<int>{0, 0, 0});
  CHECK(depth.choose(3, {}, 100).empty());
  // Most go to those that are most likely to be right.
  const std::vector<DraftDepth::Candidate> mixed = {{0.2, 8}, {0.95, 8}, {0.0, 8}};
  const std::vector<int> uneven = depth.choose(3, mixed, 100);
  CHECK(uneven[1] > uneven[0]);
  CHECK(uneven[2] == 0);
}

TEST_CASE("a step waits for prompts of the draft model no longer than half of its own time") {
  DraftDepth depth;
  CHECK(depth.prompt_tokens(4) == 32);  // before anything is known
  for (int i = 0; i < 4; ++i) depth.record(4, 4, 4, 0.1);
  depth.record_draft_prompt(100, 0.05);
  CHECK(depth.prompt_tokens(4) == 100);
  for (int i = 0; i < 200; ++i) depth.record_draft_prompt(10, 0.1);
  CHECK(depth.prompt_tokens(4) == 32);  // fewer would be expensive
}

TEST_CASE("one slow step does not end drafts for good") {
  DraftDepth depth;
  const std::vector<DraftDepth::Candidate> sure = {{0.95, 4}};
  double speed = 0;
  int steps = 0;
  for (int i = 0; i < 3000; ++i) {
    const int n = depth.choose(1, sure, 100)[0];
    const bool slow = i == 10 || i == 11 || i == 12;
    depth.record(1, 1 + n, 1 + n, slow ? 20 : memory_bound(1, 1 + n));
    if (i < 2000) continue;
    speed += (1 + n) / memory_bound(1, 1 + n);
    ++steps;
  }
  CHECK(speed / steps > 3);
}

TEST_CASE("a few wrong drafts at the beginning do not end drafts") {
  const Ran ran = run({memory_bound, 0.1}, 1, 400, [](int step) { return step < 12 ? 0 : 0.9; });
  CHECK(ran.speed > 2.5);
}

TEST_CASE("a step that the system delayed does not count against drafts") {
  DraftDepth depth;
  const std::vector<DraftDepth::Candidate> good = {{0.9, 3}};
  for (int i = 0; i < 20; ++i) {
    const int n = depth.choose(1, good, 100)[0];
    depth.record(1, 1 + n, 1 + n * (i % 2), memory_bound(1, 1 + n));
  }
  const double before = depth.balance();
  REQUIRE(depth.choose(1, good, 100)[0] > 0);
  depth.record(1, 4, 4, 500);
  CHECK(depth.balance() > before - 3);
}

TEST_CASE("the acceptance rate follows what happens") {
  AcceptanceRate rate(0.5);
  for (int i = 0; i < 100; ++i) rate.record(4, 4);
  CHECK(rate.rate() > 0.99);
  for (int i = 0; i < 100; ++i) rate.record(0, 4);
  CHECK(rate.rate() < 0.01);
  for (int i = 0; i < 2000; ++i) rate.record(3, 8);  // three in four of those that were checked
  CHECK(rate.rate() == doctest::Approx(0.75).epsilon(0.15));
  const double before = rate.rate();
  rate.record(0, 0);
  CHECK(rate.rate() == before);
  for (int i = 0; i < 300; ++i) rate.forget();
  CHECK(rate.rate() == doctest::Approx(0.5).epsilon(0.05));
}
