#include "ggml-like/op.h"

#include <array>

namespace infer {
namespace {

constexpr std::array kOps = {
    OpInfo{Op::kEmbed, "embed", 1, 1, 1, true, false},
    OpInfo{Op::kNgramEmbed, "ngram_embed", 1, 1, 1, true, true, true},
    OpInfo{Op::kStepHidden, "step_hidden", 0, 0, 1, false, false},
    OpInfo{Op::kSelectRows, "select_rows", 1, 1, 1, false, false},
    OpInfo{Op::kMatMul, "matmul", 2, 3, 1, true, false},
    OpInfo{Op::kMatMulExperts, "matmul_experts", 2, 4, 1, true, false},
    OpInfo{Op::kRmsNorm, "rms_norm", 1, 2, 1, false, false},
    OpInfo{Op::kLayerNorm, "layer_norm", 1, 3, 1, false, false},
    OpInfo{Op::kRms, "rms", 1, 1, 1, false, false},
    OpInfo{Op::kSoftmax, "softmax", 1, 1, 1, false, false},
    OpInfo{Op::kSparsify, "sparsify", 1, 1, 1, false, false},
    OpInfo{Op::kAdd, "add", 2, 2, 1, false, false},
    OpInfo{Op::kMul, "mul", 2, 2, 1, false, false},
    OpInfo{Op::kScale, "scale", 1, 1, 1, false, false},
    OpInfo{Op::kClamp, "clamp", 1, 1, 1, false, false},
    OpInfo{Op::kUnary, "unary", 1, 1, 1, false, false},
    OpInfo{Op::kXielu, "xielu", 1, 1, 1, false, false},
    OpInfo{Op::kGatedActivation, "gated_activation", 2, 2, 1, false, false},
    OpInfo{Op::kSlice, "slice", 1, 1, 1, false, false},
    OpInfo{Op::kConcat, "concat", 2, 2, 1, false, false},
    OpInfo{Op::kMixStreams, "mix_streams", 2, 2, 1, false, false},
    OpInfo{Op::kAgreement, "agreement", 2, 2, 1, false, false},
    OpInfo{Op::kSinkhorn, "sinkhorn", 1, 1, 1, false, false},
    OpInfo{Op::kRopeTable, "rope_table", 0, 1, 1, false, false},
    OpInfo{Op::kRope, "rope", 2, 2, 1, false, false},
    OpInfo{Op::kPositionFactor, "position_factor", 0, 0, 1, false, false},
    OpInfo{Op::kKvStore, "kv_store", 1, 2, 0, false, true},
    OpInfo{Op::kPagedAttention, "paged_attention", 1, 2, 1, false, true},
    OpInfo{Op::kSelectPositions, "select_positions", 1, 2, 1, false, true},
    OpInfo{Op::kSparseAttention, "sparse_attention", 1, 3, 2, false, true},
    OpInfo{Op::kShortConv, "short_conv", 2, 3, 1, false, true, true},
    OpInfo{Op::kGatedPool, "gated_pool", 2, 3, 1, false, true, true},
    OpInfo{Op::kTokenShift, "token_shift", 1, 1, 1, false, true, true},
    OpInfo{Op::kSelectiveScan, "selective_scan", 5, 6, 1, false, true, true},
    OpInfo{Op::kDeltaRule, "delta_rule", 6, 6, 1, false, true, true},
    OpInfo{Op::kWkv, "wkv", 5, 7, 2, false, true, true},
    OpInfo{Op::kMoeRoute, "moe_route", 1, 3, 2, false, false},
    OpInfo{Op::kMoeCombine, "moe_combine", 2, 2, 1, false, false},
    OpInfo{Op::kTopK, "top_k", 1, 1, 3, false, false},
};

constexpr bool in_order() {
  for (size_t i = 0; i < kOps.size(); ++i) {
    if (static_cast<size_t>(kOps[i].op) != i) return false;
  }
  return kOps.size() == static_cast<size_t>(Op::kTopK) + 1;
}
static_assert(in_order());

}  // namespace

std::span<const OpInfo> all_ops() { return kOps; }

const OpInfo& op_info(Op op) { return kOps[static_cast<size_t>(op)]; }

int weight_input(Op op) { return op == Op::kEmbed || op == Op::kNgramEmbed ? 0 : 1; }

void NgramTables::rows_of(int32_t id, const float* before, int32_t* rows) const {
  uint64_t mixed = static_cast<uint64_t>(id) * multipliers[0];
  bool ended = false;
  for (size_t place = 1; place < multipliers.size(); ++place) {
    const auto previous = static_cast<int32_t>(before[multipliers.size() - 1 - place]) - 1;
    ended = ended || previous < 0 || previous == end_token;
    mixed ^= static_cast<uint64_t>(ended ? end_token : previous) * multipliers[place];
    for (int i = 0; i < per_length; ++i) {
      const size_t lookup = (place - 1) * static_cast<size_t>(per_length) + static_cast<size_t>(i);
      rows[lookup] = static_cast<int32_t>(mixed % sizes[lookup] + offsets[lookup]);
    }
  }
}

OperandMatch match_operands(const TensorDesc& a, const TensorDesc& b) {
  const int64_t row = a.shape.row_elements(), last = a.shape.last();
  if (b.shape == a.shape && b.rows == a.rows) return {true, 1, row};
  if (b.shape.rank == 1) return {false, 1, last};
  // One vector for all vectors of the row, or one value per vector.
  return b.shape.last() == last ? OperandMatch{true, 1, last} : OperandMatch{true, last, row};
}

bool GatedActivationParams::plain() const {
  constexpr float kNone = std::numeric_limits<float>::infinity();
  return gate_limit == kNone && activation_limit == kNone && up_limit == kNone && up_offset == 0;
}

std::string_view unary_name(UnaryKind kind) {
  constexpr std::string_view kNames[] = {"silu",    "gelu_tanh", "gelu_erf",   "relu",    "relu_squared",
                                         "sigmoid", "tanh",      "gelu_quick", "softplus"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace infer
