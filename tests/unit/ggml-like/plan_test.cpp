// Plans: memory shared by liveness, copies between devices, fallbacks, observers. Random graphs run on ref with shared
// memory, with memory of its own for every value, and spread over a second device whose memory the host cannot see; all
// results must be bit-identical.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>

#include "ggml-like/error.h"
#include "tests/unit/ggml-like/plan_world.h"

using namespace infer;
using namespace infer::test;

TEST_CASE("plan: sharing memory by liveness changes no result") {
  int smaller = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Weights weights;
    const RandomGraph r = random_graph(seed, weights, 5 + static_cast<int>(seed % 40));
    Machine machine = only_ref();
    const std::vector<ValueId> last{r.values.back(), r.values[r.values.size() / 2]};
    const Ran shared = run(machine, r.graph, last);
    Graph separate = r.graph;
    for (const ValueId id : r.values) separate.mark_output(id);
    const Ran alone = run(machine, separate, last);
    CAPTURE(seed);
    CHECK(same(shared.outputs, alone.outputs));
    for (const auto& output : shared.outputs) {
      for (const float v : output) CHECK(std::isfinite(v));
    }
    smaller += shared.arena_bytes[0] < alone.arena_bytes[0];
  }
  CHECK(smaller > 40);
}

TEST_CASE("plan: a chain needs the memory of two values") {
  Weights weights;
  RandomGraph r = random_graph(1, weights, 0);
  ValueId x = r.values[0];
  for (int i = 0; i < 50; ++i) x = r.graph.scale(x, 0.9f);
  Machine machine = only_ref();
  CHECK(run(machine, r.graph, {x}).arena_bytes[0] == 2 * ((kBucket * kWidth * 4 + 63) / 64 * 64));
}

TEST_CASE("plan: two host devices give the results of one, and a value crosses once") {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Weights weights;
    const RandomGraph r = random_graph(seed, weights, 30);
    const std::vector<ValueId> wanted{r.values.back(), r.values[10]};
    Machine one = only_ref(), two = two_refs();
    const Ran expected = run(one, r.graph, wanted);
    PlanOptions options;
    weights.tell(options);
    options.layer_device = [&](int layer) { return layer < 0 ? 0 : static_cast<int>((seed >> (layer % 6)) & 1); };
    const Ran split = run(two, r.graph, wanted, options);
    CAPTURE(seed);
    CHECK(same(expected.outputs, split.outputs));
    std::set<std::pair<ValueId, int>> crossed;
    for (const Plan::Step& s : split.steps) {
      if (s.kind != Plan::Step::Kind::kBorder) continue;
      CHECK(s.device != s.from_device);
      for (const ValueId value : s.values) CHECK(crossed.insert({value, s.device}).second);
    }
    CHECK(split.fallbacks.empty());
  }
}

TEST_CASE("plan: kernels that a device with its own memory lacks run on the host") {
  int copies = 0, fallbacks = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Weights weights;
    const RandomGraph r = random_graph(seed, weights, 30);
    const std::vector<ValueId> wanted{r.values.back(), r.values[12]};
    Machine one = only_ref(), both = ref_and_fake();
    const Ran expected = run(one, r.graph, wanted);
    // The matmuls' weights are on the device; the F16 matmul falls back, and so do the other operations.
    for (int w = 1; w <= 3; ++w) weights.move_to(weights.all()[w], 1, *both.devices[1], *both.streams[1]);
    PlanOptions options;
    weights.tell(options);
    options.layer_device = [](int layer) { return layer >= 1 && layer % 3 != 0; };
    const Ran split = run(both, r.graph, wanted, options);
    CAPTURE(seed);
    CHECK(same(expected.outputs, split.outputs));
    for (const Plan::Step& s : split.steps) copies += static_cast<int>(s.values.size());
    fallbacks += static_cast<int>(split.fallbacks.size());
    for (const Fallback& f : split.fallbacks) {
      CHECK(f.device == "fake0");
      CHECK(f.op != Op::kScale);
      CHECK((f.op != Op::kMatMul || f.type == DataType::kF16));
      CHECK(f.first_layer <= f.last_layer);
    }
    std::set<std::pair<Op, DataType>> reported;
    for (const Fallback& f : split.fallbacks) CHECK(reported.insert({f.op, f.type}).second);
  }
  CHECK(copies > 40);
  CHECK(fallbacks > 40);
}

TEST_CASE("plan: a missing kernel is an error when offload is strict, and always for operations on the cache") {
  Weights weights;
  RandomGraph r = random_graph(1, weights, 0);
  r.graph.set_layer(4);
  const ValueId y = r.graph.unary(r.values[0], UnaryKind::kTanh);
  Machine both = ref_and_fake();
  PlanOptions options;
  options.layer_device = [](int layer) { return layer == 4; };
  const Ran loose = run(both, r.graph, {y}, options);
  REQUIRE(loose.fallbacks.size() == 1);
  CHECK(loose.fallbacks[0].op == Op::kUnary);
  CHECK(loose.fallbacks[0].first_layer == 4);
  options.strict = true;
  const auto error_of = [&](const Graph& graph) -> std::string {
    try {
      run(both, graph, {}, options);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kUnsupported);
      return error.what();
    }
    return "";
  };
  CHECK(error_of(r.graph) ==
        "[plan] operation unary of F32 in layer 4: expected a kernel on device fake0, found none (strict offload)");
  options.strict = false;
  Graph cached(kBucket, 0);
  cached.set_layer(2);
  CacheDesc cache;
  cache.layer = 4;  // it decides where the node runs
  cache.n_kv_head = 1, cache.key_dim = cache.value_dim = kWidth;
  const ValueId x = cached.reshape(cached.embed(weights.all()[0]), {kBucket, 1, kWidth});
  cached.kv_store(x, x, cache);
  CHECK(error_of(cached) ==
        "[plan] operation kv_store of F32 in layer 2: expected a kernel on device fake0, found none");
}

TEST_CASE("plan: observers see the rows that hold data of all values with their name, also of views and on devices") {
  Weights weights;
  test::Random random(3);
  for (const bool on_fake : {false, true}) {
    Graph g(kBucket, 0);
    RandomGraph r = random_graph(1, weights, 0);
    r.graph.set_layer(1);
    const ValueId y = r.graph.name(r.graph.scale(r.values[0], 2), "doubled");
    const ValueId part = r.graph.name(r.graph.view_columns(y, 3, 2), "part");
    const ValueId z = r.graph.add(y, y);
    Machine machine = on_fake ? ref_and_fake() : only_ref();
    std::vector<float> doubled, parts;
    int calls = 0;
    PlanOptions options;
    options.layer_device = [&](int layer) { return on_fake && layer == 1; };
    options.observers.push_back(
        {"doubled", [&](const TensorDesc& d, const float* data, int64_t rows, const StepView& s) {
           CHECK(rows == kTokens);
           CHECK(s.n_tokens() == kTokens);
           doubled.assign(data, data + rows * d.shape.row_elements());
           ++calls;
         }});
    options.observers.push_back({"part", [&](const TensorDesc& d, const float* data, int64_t rows, const StepView&) {
                                   parts.assign(data, data + rows * d.shape.row_elements());
                                 }});
    options.observers.push_back(
        {"nobody", [&](const TensorDesc&, const float*, int64_t, const StepView&) { FAIL("called"); }});
    const Ran ran = run(machine, r.graph, {y, part, z}, options);
    CHECK(calls == 2);  // the plan runs twice
    CHECK(doubled == ran.outputs[0]);
    CHECK(parts == ran.outputs[1]);
    for (int t = 0; t < kTokens; ++t) {
      for (int i = 0; i < 2; ++i) CHECK(ran.outputs[1][t * 2 + i] == ran.outputs[0][t * kWidth + 3 + i]);
    }
  }
}

TEST_CASE("plan: a matmul observer sees the inputs and experts of every matmul") {
  Weights weights;
  test::Random random(5);
  Weight& table = weights.add({7, kWidth}, random);
  Weight& square = weights.add({kWidth, kWidth}, random);
  Weight& router = weights.add({3, kWidth}, random);
  Weight& experts = weights.add({3, kWidth, kWidth}, random);
  square.name = "square", router.name = "router", experts.name = "experts";
  Graph g(kBucket, 0);
  const ValueId x = g.embed(table);
  const ValueId y = g.matmul(x, square);
  MoeRouteParams params;
  params.n_used = 2;
  const Graph::Route route = g.moe_route(g.matmul(y, router), params);
  const ValueId first = g.matmul_experts(y, experts, route.ids);
  const ValueId second = g.matmul_experts(first, experts, route.ids);
  std::map<std::string, int> calls;
  std::vector<std::vector<float>> inputs;
  std::vector<std::vector<int32_t>> used;
  PlanOptions options;
  options.product_observer = [&](const ProductInput& input) {
    ++calls[input.weight.name];
    CHECK(input.row_size == kWidth);
    inputs.emplace_back(input.values.begin(), input.values.end());
    used.emplace_back(input.experts.begin(), input.experts.end());
    CHECK(input.n_used == (input.experts.empty() ? 0 : 2));
  };
  Machine machine = only_ref();
  const Ran ran = run(machine, g, {x, y, first, second}, options);
  CHECK(calls == std::map<std::string, int>{{"square", 2}, {"router", 2}, {"experts", 4}});  // the plan runs twice
  REQUIRE(inputs.size() == 8);
  CHECK(inputs[0] == ran.outputs[0]);
  CHECK(inputs[1] == ran.outputs[1]);
  CHECK(inputs[2] == ran.outputs[1]);
  CHECK(inputs[3] == ran.outputs[2]);
  CHECK(used[2].size() == 2 * kTokens);
  CHECK(used[2] == used[3]);
}

TEST_CASE("plan: views of weights are read where the weight lies") {
  Weights weights;
  test::Random random(8);
  Weight& table = weights.add({7, kWidth}, random);
  Weight& pair = weights.add({kBucket, 2 * kWidth}, random);
  pair.desc.rows = RowKind::kTokens;
  Graph g(kBucket, 0);
  const ValueId x = g.embed(table), left = g.view_columns(g.weight(pair), 0, kWidth),
                right = g.view_columns(g.weight(pair), kWidth, kWidth);
  const ValueId y = g.add(g.add(x, left), right);
  Machine machine = only_ref();
  const Ran ran = run(machine, g, {y, x});
  const auto* values = reinterpret_cast<const float*>(pair.host);
  for (int t = 0; t < kTokens; ++t) {
    for (int i = 0; i < kWidth; ++i) {
      const float expected =
          ran.outputs[1][t * kWidth + i] + values[t * 2 * kWidth + i] + values[t * 2 * kWidth + kWidth + i];
      CHECK(ran.outputs[0][t * kWidth + i] == expected);
    }
  }
}

TEST_CASE("plan: adjacent nodes of one device make one segment") {
  Weights weights;
  const RandomGraph r = random_graph(2, weights, 20);
  Machine machine = only_ref();
  const Ran ran = run(machine, r.graph, {r.values.back()});
  REQUIRE(ran.steps.size() == 1);
  CHECK(ran.steps[0].count == static_cast<int>(r.graph.nodes().size()));
}
