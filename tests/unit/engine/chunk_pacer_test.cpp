#include "src/engine/chunk_pacer.h"

#include <doctest/doctest.h>

using namespace infer;

TEST_CASE("without a bound, or with no decodes, prompts are not limited") {
  ChunkPacer off(0);
  off.record({1, 100, 0, 1.0});
  CHECK(off.prompt_budget(5) == INT32_MAX);
  ChunkPacer on(0.1);
  on.record({1, 100, 0, 1.0});
  CHECK(on.prompt_budget(0) == INT32_MAX);
}

TEST_CASE("chunks follow the cost of a prompt token in steps with decodes") {
  ChunkPacer pacer(0.1505);            // initial target: 100 ms
  CHECK(pacer.prompt_budget(1) == 8);  // small until something is known
  pacer.record({1, 100, 0, 0.100});    // 1 ms a token
  CHECK(pacer.prompt_budget(1) == 100);
  for (int i = 0; i < 50; ++i) pacer.record({4, 0, 4, 0.035});
  CHECK(pacer.prompt_budget(4) == 65);                           // 100 ms less a decode step
  for (int i = 0; i < 50; ++i) pacer.record({5, 10, 4, 0.055});  // 2 ms a token
  CHECK(pacer.prompt_budget(4) == 32);
  pacer.record({5, 10, 4, 0.045});  // recovers slowly
  CHECK(pacer.prompt_budget(4) > 32);
  CHECK(pacer.prompt_budget(4) < 45);
  for (int i = 0; i < 40; ++i) pacer.record({5, 10, 4, 0.045});
  CHECK(pacer.prompt_budget(4) >= 64);
}

TEST_CASE("chunks shrink if more than one step in a hundred overruns its prediction") {
  const auto after = [](int slow_one_in) {
    ChunkPacer pacer(0.1505);
    for (int i = 0; i < 50; ++i) pacer.record({4, 0, 4, 0.035});
    for (int i = 1; i <= 320; ++i) pacer.record({5, 10, 4, i % slow_one_in == 0 ? 0.0675 : 0.045});
    return pacer.prompt_budget(4);
  };
  CHECK(after(1000) >= 72);  // 150 / 1.4 less 35
  CHECK(after(1000) <= 73);
  CHECK(after(101) >= 71);
  CHECK(after(33) >= 64);  // 150 / 1.5 less 35
  CHECK(after(33) <= 65);
}

TEST_CASE("prompts advance when decodes alone exceed the bound, and when a token costs nothing") {
  ChunkPacer pacer(0.010);
  pacer.record({4, 0, 4, 0.020});
  pacer.record({5, 1, 4, 0.030});
  CHECK(pacer.prompt_budget(1) == 1);
  CHECK(pacer.prompt_budget(32) == 8);
  ChunkPacer fast(0.010);
  fast.record({1, 10, 0, 0});
  CHECK(fast.prompt_budget(1) > 1000000);
}
