// support.txt lists the operations and types that each backend supports. Losing one is a regression; gaining one has to
// be recorded in the file.
#include <doctest/doctest.h>

#include <array>
#include <fstream>
#include <map>
#include <string>

#include "ggml-like/error.h"
#include "tests/conformance/harness.h"

using namespace infer;
using namespace infer::test;

namespace {

// A graph with one node, whose weight or cache has the given type.
struct OneNode {
  explicit OneNode(DataType t) : type(t) { weights.reserve(8); }

  const Weight& leaf(const Shape& shape, RowKind rows, DataType t) {
    weights.push_back({"leaf", make_desc(t, shape, rows)});
    return weights.back();
  }
  const Weight& weight(const Shape& shape) { return leaf(shape, RowKind::kFixed, type); }
  ValueId x(const Shape& shape, RowKind rows = RowKind::kTokens, DataType t = DataType::kF32) {
    return g.weight(leaf(shape, rows, t));
  }
  CacheDesc cache() const { return {0, 0, 2, 256, 256, type, type}; }
  CacheDesc sparse_cache() const {
    CacheDesc desc = cache();
    desc.use = CacheUse::kSparseAttention;
    return desc;
  }
  CacheDesc index() const {
    return {.n_kv_head = 1, .key_dim = 256, .key_type = type, .latent = true, .use = CacheUse::kIndex};
  }
  CacheDesc state() const { return {.slot_values = 1 << 20}; }
  CacheDesc token_ids() const { return {.use = CacheUse::kTokenIds, .slot_values = 8}; }

  DataType type;
  std::vector<Weight> weights;  // the graph keeps their addresses
  Graph g{2, 2};
};

struct Example {
  Op op;
  void (*build)(OneNode& n);
};
constexpr std::array kExamples = {
    Example{Op::kEmbed,
            [](OneNode& n) {
              n.g.embed(n.weight({4, 256}));
            }},
    Example{Op::kNgramEmbed,
            [](OneNode& n) {
              NgramTables tables{.per_length = 1, .end_token = 0, .multipliers = {1, 2}, .sizes = {4}, .offsets = {0}};
              n.g.ngram_embed(n.weight({4, 256}), std::make_shared<const NgramTables>(tables), n.token_ids());
            }},
    Example{Op::kStepHidden, [](OneNode& n) { n.g.step_hidden(64); }},
    Example{Op::kSelectRows,
            [](OneNode& n) {
              n.g.select_rows(n.x({2, 256}));
            }},
    Example{Op::kMatMul,
            [](OneNode& n) {
              n.g.matmul(n.x({2, 256}), n.weight({4, 256}));
            }},
    Example{Op::kMatMulExperts,
            [](OneNode& n) {
              const ValueId ids = n.x({2, 1}, RowKind::kTokens, DataType::kI32);
              n.g.matmul_experts(n.x({2, 256}), n.weight({3, 4, 256}), ids);
            }},
    Example{Op::kRmsNorm,
            [](OneNode& n) {
              n.g.rms_norm(n.x({2, 256}), nullptr, 1e-5f);
            }},
    Example{Op::kLayerNorm,
            [](OneNode& n) {
              n.g.layer_norm(n.x({2, 256}), nullptr, nullptr, 1e-5f);
            }},
    Example{Op::kRms,
            [](OneNode& n) {
              n.g.rms(n.x({2, 256}));
            }},
    Example{Op::kSoftmax,
            [](OneNode& n) {
              n.g.softmax(n.x({2, 256}));
            }},
    Example{Op::kSparsify,
            [](OneNode& n) {
              n.g.sparsify(n.x({2, 256}), 1);
            }},
    Example{Op::kAdd,
            [](OneNode& n) {
              n.g.add(n.x({2, 256}), n.x({2, 256}));
            }},
    Example{Op::kMul,
            [](OneNode& n) {
              n.g.mul(n.x({2, 256}), n.x({2, 256}));
            }},
    Example{Op::kScale,
            [](OneNode& n) {
              n.g.scale(n.x({2, 256}), 2);
            }},
    Example{Op::kClamp,
            [](OneNode& n) {
              n.g.clamp(n.x({2, 256}), -1, 1);
            }},
    Example{Op::kUnary,
            [](OneNode& n) {
              n.g.unary(n.x({2, 256}), UnaryKind::kSilu);
            }},
    Example{Op::kXielu,
            [](OneNode& n) {
              n.g.xielu(n.x({2, 256}), {.alpha_n = 1});
            }},
    Example{Op::kGatedActivation,
            [](OneNode& n) {
              n.g.gated_activation(n.x({2, 256}), n.x({2, 256}), UnaryKind::kSilu);
            }},
    Example{Op::kSlice,
            [](OneNode& n) {
              n.g.slice_columns(n.x({2, 256}), 1, 64);
            }},
    Example{Op::kConcat,
            [](OneNode& n) {
              n.g.concat_columns(n.x({2, 2, 64}), n.x({2, 1, 64}));
            }},
    Example{Op::kMixStreams,
            [](OneNode& n) {
              n.g.mix_streams(n.x({2, 4, 64}), n.x({2, 3, 4}));
            }},
    Example{Op::kAgreement,
            [](OneNode& n) {
              n.g.agreement(n.x({2, 4, 64}), n.x({2, 4, 64}));
            }},
    Example{Op::kSinkhorn,
            [](OneNode& n) {
              n.g.sinkhorn(n.x({2, 4, 4}), {});
            }},
    Example{Op::kRopeTable, [](OneNode& n) { n.g.rope_table({.n_dims = 64}); }},
    Example{Op::kRope,
            [](OneNode& n) {
              n.g.rope(n.x({2, 4, 64}), n.x({2, 32, 2}), false);
            }},
    Example{Op::kPositionFactor, [](OneNode& n) { n.g.position_factor({.scale = 1}); }},
    Example{Op::kKvStore,
            [](OneNode& n) {
              n.g.kv_store(n.x({2, 2, 256}), n.x({2, 2, 256}), n.cache());
            }},
    Example{Op::kPagedAttention,
            [](OneNode& n) {
              n.g.paged_attention(n.x({2, 4, 256}), n.cache(), {});
            }},
    Example{Op::kSelectPositions,
            [](OneNode& n) {
              n.g.select_positions(n.x({2, 4, 256}), kNoValue, n.index(), {.count = 3});
            }},
    Example{Op::kSparseAttention,
            [](OneNode& n) {
              const ValueId blocks = n.x({2, 1, 3}, RowKind::kTokens, DataType::kI32);
              n.g.sparse_attention(n.x({2, 4, 256}), blocks, n.sparse_cache(), {});
            }},
    Example{Op::kShortConv,
            [](OneNode& n) {
              n.g.short_conv(n.x({2, 64}), n.leaf({64, 4}, RowKind::kFixed, DataType::kF32), nullptr, {}, n.state());
            }},
    Example{Op::kGatedPool,
            [](OneNode& n) {
              const ValueId x = n.x({2, 2, 64});
              n.g.gated_pool(x, x, nullptr, 4, n.state());
            }},
    Example{Op::kTokenShift,
            [](OneNode& n) {
              n.g.token_shift(n.x({2, 64}), n.state());
            }},
    Example{Op::kSelectiveScan,
            [](OneNode& n) {
              const Weight& a = n.leaf({4}, RowKind::kFixed, DataType::kF32);
              n.g.selective_scan({n.x({2, 4, 16}), n.x({2, 4}), n.x({2, 2, 8}), n.x({2, 2, 8})}, a, nullptr, n.state());
            }},
    Example{Op::kDeltaRule,
            [](OneNode& n) {
              const Weight& a = n.leaf({4}, RowKind::kFixed, DataType::kF32);
              const ValueId keys = n.x({2, 2, 8});
              n.g.delta_rule({keys, keys, n.x({2, 4, 16}), n.x({2, 4}), n.x({2, 4})}, a, {}, n.state());
            }},
    Example{Op::kWkv,
            [](OneNode& n) {
              const Weight& first = n.leaf({32}, RowKind::kFixed, DataType::kF32);
              const ValueId x = n.x({2, 2, 16});
              n.g.wkv({x, x, x, x}, first, n.state());
            }},
    Example{Op::kMoeRoute,
            [](OneNode& n) {
              n.g.moe_route(n.x({2, 8}), {.n_used = 2});
            }},
    Example{Op::kMoeCombine,
            [](OneNode& n) {
              n.g.moe_combine(n.x({2, 2, 256}), n.x({2, 2}));
            }},
    Example{Op::kTopK,
            [](OneNode& n) {
              n.g.top_k(n.x({2, 256}, RowKind::kOutputs), 2);
            }},
};

bool supports(const Device& device, const Example& example, DataType type) {
  OneNode made(type);
  try {
    example.build(made);
    const Graph& g = made.g;
    const Node& node = g.nodes().at(0);
    std::vector<const TensorDesc*> inputs, outputs;
    for (const ValueId id : node.inputs) inputs.push_back(id == kNoValue ? nullptr : &g.value(id).desc);
    for (const ValueId id : node.outputs) outputs.push_back(&g.value(id).desc);
    return device.supports(
        {node.op, &node.params, inputs, outputs, op_info(node.op).has_cache ? &node.cache : nullptr});
  } catch (const Error&) {
    return false;  // the builder refuses the type
  }
}

// One line per operation with the types of its weight or cache, such as "matmul: F32 F16 ...". An operation without
// either is tested with F32 only.
std::string support_of(const Device& device) {
  std::string text;
  for (const Example& example : kExamples) {
    const OpInfo& info = op_info(example.op);
    std::string types;
    for (const TypeTraits& t : all_types()) {
      const bool typed = info.has_weight || (info.has_cache && !info.has_state);
      if (!typed && t.type != DataType::kF32) continue;
      if (supports(device, example, t.type)) types += concat(" ", t.name);
    }
    if (!types.empty()) text += concat(info.name, ":", types, "\n");
  }
  return text;
}

}  // namespace

TEST_CASE("there is an example of every operation") {
  REQUIRE(kExamples.size() == all_ops().size());
  for (size_t i = 0; i < kExamples.size(); ++i) {
    CHECK(kExamples[i].op == all_ops()[i].op);
    OneNode made(DataType::kF32);
    kExamples[i].build(made);
    CHECK(made.g.nodes().at(0).op == kExamples[i].op);
  }
}

TEST_CASE("every backend supports exactly what support.txt lists") {
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
    // "[cpu]", "[ref]", "[vulkan]": without the level and without the number of an accelerator
    std::string kind = t.name.substr(0, t.name.find(':'));
    kind = concat("[", kind.substr(0, kind.find_first_of("0123456789")), "]");
    const std::string found = support_of(*t.device);
    CHECK_MESSAGE(found == expected[kind], t.name << " supports:\n" << kind << "\n" << found);
  }
}
