// The work counted by a profile, checked against sums made by hand.
#include "ggml-like/profile.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace infer;

namespace {

constexpr int kPromptTokens = 5;

// One sequence whose last tokens, at positions 3 .. 7, are computed.
StepInputs step_of_five() {
  StepInputs step({.tokens = 8, .outputs = 1, .sequences = 1, .groups = 1, .blocks_per_sequence = 1});
  const std::vector<int32_t> table{0};
  const std::span<const int32_t> tables[] = {table};
  step.add_sequence(tables, 3 + kPromptTokens);
  for (int t = 0; t < kPromptTokens; ++t) step.add_token(0, 1, 3 + t, t == kPromptTokens - 1);
  return step;
}

ProfileLine only_line(const Profile& profile, Op op) {
  const std::vector<ProfileLine> lines = profile.lines();
  const auto found = std::find_if(lines.begin(), lines.end(), [&](const ProfileLine& line) { return line.op == op; });
  REQUIRE(found != lines.end());
  return *found;
}

}  // namespace

TEST_CASE("a matmul counts its weight once and two operations per value and token") {
  Graph graph(8, 1);
  const Weight table{"table", make_desc(DataType::kF32, {16, 64}), nullptr};
  const Weight weight{"weight", make_desc(DataType::kQ8_0, {96, 64}), nullptr};
  const ValueId x = graph.embed(table);
  graph.matmul(x, weight);
  const StepInputs step = step_of_five();
  Profile profile;
  profile.add(graph, graph.nodes()[1], step.view(), 0.25);
  profile.add(graph, graph.nodes()[1], step.view(), 0.5);
  const ProfileLine line = only_line(profile, Op::kMatMul);
  CHECK(line.type == DataType::kQ8_0);
  CHECK(line.quantized);
  CHECK(line.n == 96);
  CHECK(line.k == 64);
  CHECK(line.calls == 2);
  CHECK(line.rows == 2 * kPromptTokens);
  CHECK(line.seconds == 0.75);
  CHECK(line.operations == 2 * 2.0 * 96 * 64 * kPromptTokens);
  CHECK(line.bytes == 2 * 96.0 * 2 * 34);  // two blocks of 34 bytes per row
}

TEST_CASE("attention counts the positions each token sees, no more than its window") {
  for (const int window : {0, 2}) {
    Graph graph(8, 1);
    const Weight table{"table", make_desc(DataType::kF32, {16, 64}), nullptr};
    CacheDesc cache;
    cache.n_kv_head = 2;
    cache.key_dim = cache.value_dim = 16;
    AttentionParams params;
    params.window = window;
    const ValueId q = graph.reshape(graph.embed(table), {8, 4, 16});
    graph.paged_attention(q, cache, params);
    const StepInputs step = step_of_five();
    Profile profile;
    profile.add(graph, graph.nodes().back(), step.view(), 1);
    const ProfileLine line = only_line(profile, Op::kPagedAttention);
    const int seen = window == 0 ? 4 + 5 + 6 + 7 + 8 : 2 * kPromptTokens;
    CHECK(line.operations == 2.0 * 4 * (16 + 16) * seen);
    CHECK(line.bytes == (16 + 16) * 2.0 * 2 * (window == 0 ? 8 : 2));  // F16
  }
}

TEST_CASE("profiles add up, the most expensive line first") {
  Graph graph(8, 1);
  const Weight table{"table", make_desc(DataType::kF32, {16, 64}), nullptr};
  const ValueId x = graph.embed(table);
  graph.add(x, x);
  const StepInputs step = step_of_five();
  Profile a, b;
  a.add(graph, graph.nodes()[0], step.view(), 1);
  b.add(graph, graph.nodes()[0], step.view(), 1);
  b.add(graph, graph.nodes()[1], step.view(), 3);
  a.add(b);
  CHECK(a.seconds() == 5);
  REQUIRE(a.lines().size() == 2);
  CHECK(a.lines()[0].op == Op::kAdd);
  CHECK(a.lines()[1].calls == 2);
  a.clear();
  CHECK(a.lines().empty());
}
