// support.txt says which operations and types every backend has. A line that is lost is a regression, a line that is
// gained has to be written down: the file is the truth that users and `infer devices --ops` can be checked against.
#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <string>

#include "ggml-like/error.h"
#include "tests/conformance/harness.h"

using namespace infer;
using namespace infer::test;

namespace {

// A graph with one node of `op` whose weights, or cache, have the type.
Graph graph_of(Op op, DataType type, std::vector<Weight>& weights) {
  Graph g(2, 2);
  weights.reserve(8);
  const auto leaf = [&](const Shape& shape, RowKind rows, DataType t = DataType::kF32) -> const Weight& {
    weights.push_back({"leaf", make_desc(t, shape, rows)});
    return weights.back();
  };
  const auto x = [&](const Shape& shape) { return g.weight(leaf(shape, RowKind::kTokens)); };
  const CacheDesc cache{0, 0, 2, 256, 256, type, type};
  switch (op) {
    case Op::kEmbed:
      g.embed(leaf({4, 256}, RowKind::kFixed, type));
      break;
    case Op::kSelectRows:
      g.select_rows(x({2, 256}));
      break;
    case Op::kMatMul: {
      const ValueId in = x({2, 256});
      g.matmul(in, leaf({4, 256}, RowKind::kFixed, type));
      break;
    }
    case Op::kMatMulExperts: {
      const ValueId in = x({2, 256}), ids = g.weight(leaf({2, 1}, RowKind::kTokens, DataType::kI32));
      g.matmul_experts(in, leaf({3, 4, 256}, RowKind::kFixed, type), ids);
      break;
    }
    case Op::kRmsNorm:
      g.rms_norm(x({2, 256}), nullptr, 1e-5f);
      break;
    case Op::kLayerNorm:
      g.layer_norm(x({2, 256}), nullptr, nullptr, 1e-5f);
      break;
    case Op::kAdd:
      g.add(x({2, 256}), x({2, 256}));
      break;
    case Op::kMul:
      g.mul(x({2, 256}), x({2, 256}));
      break;
    case Op::kScale:
      g.scale(x({2, 256}), 2);
      break;
    case Op::kUnary:
      g.unary(x({2, 256}), UnaryKind::kSilu);
      break;
    case Op::kGatedActivation:
      g.gated_activation(x({2, 256}), x({2, 256}), UnaryKind::kSilu);
      break;
    case Op::kRopeTable:
      g.rope_table({.n_dims = 64});
      break;
    case Op::kRope:
      g.rope(x({2, 4, 64}), x({2, 32, 2}), false);
      break;
    case Op::kKvStore:
      g.kv_store(x({2, 2, 256}), x({2, 2, 256}), cache);
      break;
    case Op::kPagedAttention:
      g.paged_attention(x({2, 4, 256}), cache, {});
      break;
    case Op::kMoeRoute:
      g.moe_route(x({2, 8}), {.n_used = 2});
      break;
    case Op::kMoeCombine:
      g.moe_combine(x({2, 2, 256}), x({2, 2}));
      break;
    case Op::kTopK:
      g.top_k(g.weight(leaf({2, 256}, RowKind::kOutputs)), 2);
      break;
  }
  return g;
}

bool supports(const Device& device, Op op, DataType type) {
  std::vector<Weight> weights;
  try {
    const Graph g = graph_of(op, type, weights);
    const Node& node = g.nodes().at(0);
    std::vector<const TensorDesc*> inputs, outputs;
    for (const ValueId id : node.inputs) inputs.push_back(id == kNoValue ? nullptr : &g.value(id).desc);
    for (const ValueId id : node.outputs) outputs.push_back(&g.value(id).desc);
    return device.supports({op, &node.params, inputs, outputs, op_info(op).has_cache ? &node.cache : nullptr});
  } catch (const Error&) {
    return false;  // the builder refuses the type
  }
}

// "matmul: F32 F16 ...", one line per operation, for the types of its weight or cache where it has one.
std::string support_of(const Device& device) {
  std::string text;
  for (const OpInfo& info : all_ops()) {
    std::string types;
    for (const TypeTraits& t : all_types()) {
      if (!info.has_weight && !info.has_cache && t.type != DataType::kF32) continue;
      if (supports(device, info.op, t.type)) types += concat(" ", t.name);
    }
    if (!types.empty()) text += concat(info.name, ":", types, "\n");
  }
  return text;
}

}  // namespace

TEST_CASE("every backend supports what support.txt says, and nothing else") {
  std::map<std::string, std::string> expected;
  std::ifstream file(std::string(INFER_SOURCE_DIR) + "/tests/conformance/support.txt");
  REQUIRE(file.good());
  std::string section;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.starts_with("#")) continue;
    if (line.starts_with("[")) section = line;
    else expected[section] += line + "\n";
  }
  for (const TestDevice& t : test_devices()) {
    // "[cpu]", "[ref]"; numbers behind the names of accelerators are left out
    std::string kind = t.name.substr(0, t.name.find(':'));
    kind = concat("[", kind.substr(0, kind.find_first_of("0123456789")), "]");
    const std::string found = support_of(*t.device);
    CHECK_MESSAGE(found == expected[kind], t.name << " supports:\n" << kind << "\n" << found);
  }
}
