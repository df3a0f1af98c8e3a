#include "tests/unit/ggml-like/plan_world.h"

#include <algorithm>
#include <cstring>

#include "ggml-like/ref/ref_device.h"
#include "tests/support/plan_memory.h"

namespace infer::test {
namespace {

std::unique_ptr<Device> make_fake() {
  auto state = std::make_shared<IslandState>();
  for (const OpInfo& info : all_ops()) {
    if (info.op != Op::kScale && info.op != Op::kAdd && info.op != Op::kMatMul) state->lacks.insert(info.op);
  }
  state->refuses = [](const OpDesc& op) { return op.op == Op::kMatMul && op.inputs[1]->type != DataType::kF32; };
  return make_island("fake0", create_ref_device(), state);
}

}  // namespace

Machine only_ref() {
  Machine m;
  m.add(create_ref_device());
  return m;
}

Machine two_refs() {
  Machine m = only_ref();
  m.add(create_ref_device());
  return m;
}

Islands ref_and_islands() {
  Islands islands;
  for (const char* name : {"island0", "island1"}) {
    islands.states.push_back(std::make_shared<IslandState>());
    islands.states.back()->has_peers = true;
    islands.machine.add(make_island(name, create_ref_device(), islands.states.back()));
  }
  return islands;
}

Machine ref_and_fake() {
  Machine m = only_ref();
  m.add(make_fake());
  return m;
}

StepInputs five_tokens() {
  StepInputs step({kBucket, 0, 1, 1, 1});
  const std::vector<int32_t> table{0};
  const std::span<const int32_t> tables[] = {table};
  step.add_sequence(tables, kTokens);
  for (int t = 0; t < kTokens; ++t) step.add_token(0, (t * 3) % 7, t, false);
  return step;
}

Ran run(Machine& machine, Graph graph, const std::vector<ValueId>& wanted, PlanOptions options) {
  for (const ValueId id : wanted) graph.mark_output(id);
  options.devices = machine.list();
  if (!options.layer_device) options.layer_device = [](int) { return 0; };
  Plan plan(std::move(graph), std::move(options));
  Ran result;
  const StepInputs step = five_tokens();
  const PlanMemory memory(plan, machine.list(), machine.stream_list(), step.layout());
  for (size_t d = 0; d < machine.devices.size(); ++d) {
    result.arena_bytes.push_back(plan.arena_bytes(static_cast<int>(d)));
    const std::vector<std::byte> garbage(result.arena_bytes.back(), std::byte{0xff});
    if (!garbage.empty()) {
      machine.streams[d]->upload(memory.arena(static_cast<int>(d)), 0, garbage.data(), garbage.size());
    }
  }
  // Twice: nothing may be left over from the first run that the second one needs.
  for (int repeat = 0; repeat < 2; ++repeat) plan.run(step);
  for (const ValueId id : wanted) result.outputs.push_back(output_values(plan, id, step.view()));
  result.fallbacks = plan.fallbacks();
  result.steps = plan.steps();
  return result;
}

bool same(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size() || std::memcmp(a[i].data(), b[i].data(), a[i].size() * 4) != 0) return false;
  }
  return true;
}

RandomGraph random_graph(uint64_t seed, Weights& weights, int nodes) {
  Random random(seed);
  if (weights.all().empty()) {
    weights.add({7, kWidth}, random);
    weights.add({kWidth, kWidth}, random);
    weights.add({kWidth, kWidth}, random, DataType::kF16);
    weights.add({2 * kWidth, kWidth}, random);
    weights.add({kWidth}, random);
  }
  RandomGraph r;
  Graph& g = r.graph;
  const auto pick = [&] {
    const size_t n = r.values.size();
    return r.values[random.next() % 3 == 0 ? random.next() % n : n - 1 - random.next() % std::min<size_t>(3, n)];
  };
  r.values.push_back(g.embed(weights.all()[0]));
  for (int i = 0; i < nodes; ++i) {
    g.set_layer(i / 4);
    r.layers.insert(i / 4);
    switch (random.next() % 8) {
      case 0:
        r.values.push_back(g.scale(pick(), 0.75f));
        break;
      case 1:
      case 2:
        r.values.push_back(g.add(pick(), pick()));
        break;
      case 3:
        r.values.push_back(g.mul(pick(), g.weight(weights.all()[4])));
        break;
      case 4:
        r.values.push_back(g.unary(pick(), UnaryKind::kTanh));
        break;
      case 5:
        r.values.push_back(g.rms_norm(pick(), nullptr, 1e-5f));
        break;
      case 6:
        r.values.push_back(g.matmul(pick(), weights.all()[1 + random.next() % 2]));
        break;
      default: {  // two halves of a wide matmul result, as views
        const ValueId wide = g.matmul(pick(), weights.all()[3]);
        const ValueId a = g.view_columns(wide, 0, kWidth), b = g.view_columns(wide, kWidth, kWidth);
        r.values.push_back(random.next() % 2 ? g.gated_activation(a, b, UnaryKind::kSilu) : b);
        break;
      }
    }
  }
  return r;
}

}  // namespace infer::test
