// Plans on devices whose work runs only when the host waits for it (tests/support/island_device.h): which values cross
// a border and when, and when segments are compiled.
#include <doctest/doctest.h>

#include "tests/support/plan_memory.h"
#include "tests/unit/ggml-like/plan_world.h"

using namespace infer;
using namespace infer::test;

TEST_CASE("plan: a value is not overwritten before another device has copied it") {
  Weights weights;
  RandomGraph r = random_graph(1, weights, 0);
  Graph& g = r.graph;
  const auto chain = [&](ValueId x, int layer) {
    g.set_layer(layer);
    for (int i = 0; i < 5; ++i) x = g.scale(x, 1 + 0.25f * static_cast<float>(layer));
    return x;
  };
  // The last chain reuses the memory of the first one's result, on the device that is waited for first.
  const ValueId crosses = chain(r.values[0], 1), second = chain(crosses, 2), third = chain(r.values[0], 3);
  PlanOptions options;
  options.layer_device = [](int layer) { return layer == 2 ? 2 : layer > 0 ? 1 : 0; };
  Machine alone = only_ref();
  Islands islands = ref_and_islands();
  const Ran expected = run(alone, g, {second, third}), found = run(islands.machine, g, {second, third}, options);
  CHECK(same(expected.outputs, found.outputs));
  CHECK(islands.states[1]->n_copies_from_peers == 2);  // the plan runs twice
}

TEST_CASE("plan: an output on request leaves its device row by row, when it is fetched") {
  Weights weights;
  RandomGraph r = random_graph(1, weights, 0);
  r.graph.set_layer(1);
  const ValueId wanted = r.graph.scale(r.graph.scale(r.values[0], 2), 3);
  Machine alone = only_ref();
  const std::vector<float> expected = run(alone, r.graph, {wanted}).outputs[0];
  Graph graph = r.graph;
  graph.mark_output_on_request(wanted);
  Islands islands = ref_and_islands();
  PlanOptions options;
  weights.tell(options);
  options.devices = islands.machine.list();
  options.layer_device = [](int layer) { return layer == 1 ? 1 : 0; };
  Plan plan(std::move(graph), std::move(options));
  const StepInputs step = five_tokens();
  const test::PlanMemory memory(plan, islands.machine.list(), islands.machine.stream_list(), step.layout());
  IslandState& island = *islands.states[0];
  plan.run(step);
  CHECK(island.bytes_to_staging == 0);
  const size_t width = static_cast<size_t>(plan.graph().value(wanted).desc.shape.row_elements());
  const size_t stride = static_cast<size_t>(plan.graph().value(wanted).desc.row_stride);
  const int64_t waits = island.n_waits;
  const std::vector<int> rows = {3, 1};
  plan.fetch(wanted, rows);
  CHECK(island.n_waits == waits + 1);
  CHECK(island.bytes_to_staging == static_cast<int64_t>(rows.size() * width * sizeof(float)));
  for (const int row : rows) {
    const auto* found = reinterpret_cast<const float*>(plan.output_rows(wanted)) + static_cast<size_t>(row) * stride;
    for (size_t i = 0; i < width; ++i) CHECK(found[i] == expected[static_cast<size_t>(row) * width + i]);
  }
  plan.fetch(wanted, {});
  CHECK(island.n_waits == waits + 1);
}

TEST_CASE("plan: a segment is compiled when it first runs, and again for other memory") {
  Weights weights;
  const RandomGraph r = random_graph(5, weights, 20);
  Graph graph = r.graph;
  graph.mark_output(r.values.back());
  Islands islands = ref_and_islands();
  PlanOptions options;
  weights.tell(options);
  options.devices = islands.machine.list();
  options.layer_device = [](int layer) { return layer == 2 ? 1 : 0; };
  Plan plan(std::move(graph), std::move(options));
  const StepInputs step = five_tokens();
  const int64_t& compiles = islands.states[0]->n_compiles;
  std::vector<float> first;
  {
    const test::PlanMemory memory(plan, islands.machine.list(), islands.machine.stream_list(), step.layout());
    CHECK(compiles == 0);
    plan.run(step);
    const int64_t segments = compiles;
    CHECK(segments > 0);
    plan.run(step);
    CHECK(compiles == segments);
    first = test::output_values(plan, r.values.back(), step.view());
  }
  const int64_t segments = compiles;
  const test::PlanMemory memory(plan, islands.machine.list(), islands.machine.stream_list(), step.layout());
  plan.run(step);
  CHECK(compiles == 2 * segments);
  CHECK(test::output_values(plan, r.values.back(), step.view()) == first);
}

TEST_CASE("plan: values that cross together form one border, before the first segment that needs one of them") {
  Weights weights;
  RandomGraph r = random_graph(1, weights, 0);
  Graph& g = r.graph;
  const ValueId a = g.scale(r.values[0], 2), b = g.scale(r.values[0], 3);
  g.set_layer(1);
  const ValueId c = g.scale(a, 5), d = g.add(c, b);
  PlanOptions options;
  options.layer_device = [](int layer) { return layer > 0; };
  Islands islands = ref_and_islands();
  const Ran ran = run(islands.machine, g, {d}, options);
  REQUIRE(ran.steps.size() == 3);
  CHECK(ran.steps[1].kind == Plan::Step::Kind::kBorder);
  CHECK(ran.steps[1].values == std::vector<ValueId>{a, b});
  CHECK(ran.steps[2].count == 2);
}
