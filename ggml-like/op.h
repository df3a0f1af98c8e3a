// The operations of the tensor library: one enumerator, one parameter struct and one table row each. `ref` (ref/) holds
// the definition of every operation in plain scalar code. Activations are F32; T = tokens of the step, O = output rows.
//
// Operations on recurrent states compute the tokens of each sequence in order. They start from the state in the
// sequence's slot of a `state` cache group, or from zeros at position 0, and store the state after the step's last
// token there. No result depends on how a text is split into steps.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "ggml-like/tensor.h"

namespace infer {

enum class Op : uint8_t {
  kEmbed,       // weight [n, d] -> [T, d]: the rows of the step's token ids or positions, dequantized
  kNgramEmbed,  // weight [n, d] -> [T, lookups * d]: the rows that the step's token ids and those before them hash to
  kStepHidden,  // -> [T, d]: the hidden states that come with the step's tokens
  kSelectRows,  // x [T, d] -> [O, d]: the rows that need logits
  kMatMul,      // x [rows, k], weight [n, k], (bias [n]) -> [rows, n]
  kMatMulExperts,    // x [T, k] or [T, u, k], weight [e, n, k], (ids [T, u]), (bias [e, n]) -> [T, u, n];
                     // without ids, x is [T, e, k] and its row i is for expert i
  kRmsNorm,          // x [.., d], (weight [d]) -> same: x / sqrt(mean(x^2) + eps) * weight
  kLayerNorm,        // x [.., d], (weight [d]), (bias [d]) -> same: (x - mean) / sqrt(var + eps) * weight + bias
  kRms,              // x [.., d] -> [.., 1]: sqrt(mean(x^2))
  kSoftmax,          // x [.., d] -> same: exp(x) / sum(exp(x))
  kSparsify,         // x [.., d] -> same: max(x - mean(x) - factor * deviation(x), 0)
  kAdd,              // a, b -> a + b; b has a's shape, or is [last dimension], or [T, 1, d] where a is [T, h, d]
  kMul,              // a, b -> a * b; b as for kAdd, or of a's shape with 1 as its last dimension
  kScale,            // x -> x * factor
  kClamp,            // x -> the nearest number in [low, high]
  kUnary,            // x -> f(x)
  kXielu,            // x -> alpha_p x^2 + beta x where x > 0, else alpha_n (exp(min(x, eps)) - 1 - x) + beta x
  kGatedActivation,  // gate, up -> f(gate) * up, with the limits of GatedActivationParams
  kSlice,            // x [.., d] -> [.., count]: some consecutive values of each row
  kConcat,           // a [T, h, m], b [T, h or 1, n] -> [T, h, m + n]
  kMixStreams,       // x [T, s, d], weights [T, o, s] -> [T, o, d]: sums over s, in order
  kAgreement,        // a, b [T, h, d] -> [T, h, 1]: sigmoid(sign(s) sqrt(max(|s|, 1e-6))), s = a . b / sqrt(d)
  kSinkhorn,         // x [T, n, n] -> [T, n, n]: made doubly stochastic, and transposed
  kRopeTable,        // (frequency factors [n_dims / 2]) -> [T, n_dims / 2, 2]: cosine and sine of each position
  kRope,             // x [T, n_head, head_dim], table -> same, the first n_dims of each head rotated
  kPositionFactor,   // -> [T, 1]: a factor that grows with the position
  kKvStore,          // k [T, n_kv_head, key_dim], v [T, n_kv_head, value_dim] -> into the cache; latent: no v
  kPagedAttention,   // q [T, n_head, key_dim], (sinks [n_head]) -> [T, n_head * value_dim]
  kSelectPositions,  // q [T, h, key_dim], (weights [T, h]), index keys -> blocks of positions I32 [T, 1 or h, count]
  kSparseAttention,  // q [T, n_head, key_dim], (blocks I32 [T, 1 or n_kv_head, count]), (sinks [n_head])
                     // -> [T, n_head * value_dim], log-sum-exp [T, n_head]
  kShortConv,        // x [T, c], weight [c, width], (bias [c]) -> [T, c]: a causal convolution of each channel
  kGatedPool,        // x [T, c, d], gates [T, c, d], (offsets [block, c * d]) -> [T, d]
  kTokenShift,       // x [T, c] -> [T, c]: the row of the sequence's previous token; zeros at position 0
  kSelectiveScan,    // x [T, h, d], dt [T, h], b and c [T, g, n], a [h] or [h, n], (skip [h]) -> [T, h * d]
  kDeltaRule,        // q and k [T, g, n], v [T, h, d], dt [T, h] or [T, h, n], beta [T, h], a [h] -> [T, h * d]
  kWkv,              // r, k, v, w [T, h, n], first [h * n], (a, b [T, h, n]) -> [T, h * n], bonus [T, h * n]
  kMoeRoute,         // logits [T, e], (selection bias [e]), (experts of each token id, I32 [n, u])
                     // -> ids I32 [T, u], weights [T, u]
  kMoeCombine,       // y [T, u, d], weights [T, u] -> [T, d]: sum in order of router rank
  kTopK,             // logits [O, v] -> ids I32 [O, k], values [O, k] descending, log-sum-exp [O, 1]
};

enum class UnaryKind : uint8_t {
  kSilu,         // x / (1 + exp(-x))
  kGeluTanh,     // 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
  kGeluErf,      // 0.5 x (1 + erf(x / sqrt(2)))
  kRelu,         // max(x, 0)
  kReluSquared,  // max(x, 0)^2
  kSigmoid,      // 1 / (1 + exp(-x))
  kTanh,         // tanh(x)
  kGeluQuick,    // x / (1 + exp(-1.702 x))
  kSoftplus,     // log(1 + exp(x))
};

struct NoParams {};

// What selects the rows of kEmbed.
enum class RowsBy : uint8_t { kToken, kPosition };

struct EmbedParams {
  RowsBy rows = RowsBy::kToken;
};

// Hashed n-grams (https://arxiv.org/abs/2601.07372). Lookup i hashes n = 2 + i / per_length tokens: the current one and
// the n - 1 before it. Of the earlier ones, all before the last `end_token` or before the start of the text count as
// `end_token`. The row is offsets[i] + h % sizes[i], where h is the 64-bit XOR of id * multipliers[place] over the n
// tokens; place 0 is the current token, 1 the one before it.
// State: [longest n - 1], the ids before the next token, oldest first, each plus 1; 0 stands for none.
struct NgramTables {
  int per_length = 1;  // lookups for n-grams of each length
  int32_t end_token = 0;
  std::vector<uint64_t> multipliers;   // [longest n], at least 2
  std::vector<uint32_t> sizes;         // [lookups], at least 1
  std::vector<uint32_t> offsets = {};  // [lookups]

  int64_t lookups() const { return static_cast<int64_t>(multipliers.size() - 1) * per_length; }
  int64_t state_values() const { return static_cast<int64_t>(multipliers.size()) - 1; }
  // The rows of an id; `before` has the ids before it, stored as in the state. rows: [lookups()].
  void rows_of(int32_t id, const float* before, int32_t* rows) const;
};
struct NgramParams {
  std::shared_ptr<const NgramTables> tables;
};

struct NormParams {
  float eps = 1e-5f;
};

// Softmax of each row, plus eps; then, `iterations` times, each column is divided by its sum plus eps, and in between
// each row in the same way (https://arxiv.org/abs/2512.24880). The result is transposed, as mix_streams expects it.
struct SinkhornParams {
  int iterations = 1;
  float eps = 0;
};

inline constexpr double kLeastAgreement = 1e-6;  // see kAgreement

struct ScaleParams {
  float factor = 1;
};

// The deviation is the root of the sum of squared differences from the mean, divided by d - 1.
struct SparsifyParams {
  float factor = 0;
};

// https://arxiv.org/abs/2411.13010
struct XieluParams {
  float alpha_n = 0, alpha_p = 0, beta = 0, eps = 0;
};

struct SliceParams {
  int64_t begin = 0, count = 0;
};

struct ClampParams {
  float low = 0, high = 0;
};

struct UnaryParams {
  UnaryKind kind = UnaryKind::kSilu;
};

// min(f(min(gate, gate_limit)), activation_limit) * (clamp(up, -up_limit, up_limit) + up_offset).
struct GatedActivationParams {
  GatedActivationParams() = default;
  GatedActivationParams(UnaryKind f) : kind(f) {}  // without limits

  UnaryKind kind = UnaryKind::kSilu;
  float gate_limit = std::numeric_limits<float>::infinity();
  float activation_limit = std::numeric_limits<float>::infinity();
  float up_limit = std::numeric_limits<float>::infinity();
  float up_offset = 0;

  bool plain() const;  // f(gate) * up
};

// Angle of pair i at position p: p * base^(-2i / n_dims) / factor_i, then scaled as YaRN does
// (https://arxiv.org/abs/2309.00071): between the dimensions where `beta_fast` and `beta_slow` rotations fit into the
// original context, interpolation (times freq_scale) blends into extrapolation (unscaled).
struct RopeTableParams {
  int n_dims = 0;
  float freq_base = 10000;
  float freq_scale = 1;   // 1 / scaling factor
  float ext_factor = 0;   // 1: YaRN, 0: linear interpolation
  float attn_factor = 1;  // multiplies cosine and sine; YaRN multiplies it by 1 + 0.1 ln(1 / freq_scale)
  float beta_fast = 32;
  float beta_slow = 1;
  int original_context = 0;  // tokens the model was trained with; used by YaRN only
  int period = 1;            // the angles are those of p / period * period
  bool inverse = false;      // rotates back
};

struct RopeParams {
  int n_dims = 0;            // the rest of the head passes unchanged
  bool interleaved = false;  // true: pairs (2i, 2i + 1); false: pairs (i, i + n_dims / 2)
};

// 1 + scale * ln(1 + floor((p + offset) / interval)) at position p: the temperature of queries in Llama 4
// (https://arxiv.org/abs/2501.19399) and Mistral 3.
struct PositionFactorParams {
  float scale = 0;
  int interval = 1;
  int offset = 0;
};

// softmax over the visible positions of scale * q . k, softcapped (cap * tanh(s / cap)) where softcap > 0. A token at
// position p sees positions (p - window, p], or all up to p when window is 0. With `chunked`, the window begins at the
// last multiple of `window` instead. When not causal, it sees [p - window / 2, p + window / 2] (window / 2 rounded
// down), or the whole sequence when window is 0.
struct AttentionParams {
  float scale = 1;
  bool causal = true;
  int window = 0;
  bool chunked = false;
  float softcap = 0;
  float alibi_max_bias = 0;
};

// Selects blocks of `block` consecutive cache entries among those that a token sees. Entries are positions, unless the
// cache has a stride. An entry's score is the dot product of its index key and the query: one per head, or with
// `sum_heads`, the sum over the heads of weight * max(dot product, 0) (https://arxiv.org/abs/2512.02556), where absent
// weights are 1. A block's score is the highest of its entries. The last `n_last` blocks are selected first, then those
// with the highest scores, the earlier of equals, `count` in all. Their numbers are stored in ascending order, followed
// by -1 where the token sees fewer blocks. With `unfinished`, the entry that is incomplete at the token's position, if
// there is one, is selected too: count + 1 in all.
struct SelectParams {
  int count = 1;
  int block = 1;
  int n_last = 0;
  bool sum_heads = true;
  bool unfinished = false;
};

// softmax over scale * q . k of the entries in the selected blocks, which are what select_positions returns; without
// blocks, of the last `window` entries, or of all that the token sees when window is 0. The log-sum-exp is that of
// these scores and the sink. It serves to merge parts of a context, each weighted by exp(log-sum-exp). A token that
// sees nothing gets zeros and kNothingSeen.
struct SparseAttentionParams {
  float scale = 1;
  int block = 1;
  int window = 0;
};
inline constexpr float kNothingSeen = -1e30f;

inline constexpr int kMaxConvWidth = 32;

// y_t = f(sum over i of weight[i] * x_(t - (width - 1 - i) * dilation) + bias); f is SiLU or the identity.
// State: [(width - 1) * dilation, c], the rows of x before the next token, oldest first.
struct ShortConvParams {
  bool silu = false;
  int dilation = 1;
};

// The mean of the rows of each `block` consecutive positions, weighted by the softmax of their gates, separately for
// each channel; gate offsets depend on the place in the block. Row t of the result is the mean so far of token t's
// block. With c = 2, the second half of a row belongs to its own block, and the first half to the block that follows.
// State: [c, 3, d], for the block of the next token and for the one after it: the largest gate, the sum of the weights
// relative to it, and the sum of the weighted rows. A weight sum of 0 means that there are no rows yet.
struct GatedPoolParams {
  int block = 1;
};

// State of kTokenShift: [c], the row of the last token.

// Selective scan of Mamba (https://arxiv.org/abs/2312.00752) and, with a [h], Mamba-2
// (https://arxiv.org/abs/2405.21060). Head i uses b and c of group i / (h / g). With D = softplus(dt):
//   S = exp(D a) S + D x (outer product) b;  y = S c + skip x
// State: S [h, d, n].

// Gated delta rule (https://arxiv.org/abs/2412.06464); decays per channel as in Kimi Linear
// (https://arxiv.org/abs/2510.26692) with dt [T, h, n]:
//   S = exp(a softplus(dt)) S;  S = S + k (outer product) beta (v - S' k);  y = S' q, where S' is S transposed
// With a lowest decay below 0, the first factor is exp(lowest_decay sigmoid(a dt)) instead.
// State: S [h, n, d].
struct DeltaRuleParams {
  bool tiled_heads = false;  // head i uses q and k of group i % g; otherwise of group i / (h / g)
  float lowest_decay = 0;    // natural logarithm
};

// wkv of RWKV-6 (https://arxiv.org/abs/2404.05892), and with a and b of RWKV-7 (https://arxiv.org/abs/2503.14456):
//   RWKV-6: y = S' r;  S = exp(-exp(w)) S + k (outer product) v
//   RWKV-7: S = exp(-0.606531 sigmoid(w)) S + k (outer product) v + b (outer product) (S' a);  y = S' r
// where S' a uses S of the previous token. The bonus is v times the sum of r * first * k over the head.
// State: S [h, n, n].

// How an expert's weight follows from the router's logits. Experts are selected by weight, or, if OfSelected, by logit.
enum class Gating : uint8_t { kSoftmax, kSigmoid, kSoftmaxOfSelected, kSigmoidOfSelected, kSqrtSoftplus };

inline constexpr float kLeastWeightSum = 0x1p-14f;  // the smallest normal fp16

// A selection bias changes which experts are selected, not their weights. Where a token's id selects its experts, the
// logits only decide their weights.
struct MoeRouteParams {
  int n_used = 0;
  Gating gating = Gating::kSoftmax;
  bool normalize = false;  // weights of the selected experts divided by their sum, at least by kLeastWeightSum
  float scale = 1;         // factor on the weights at the end
  int n_groups = 1;        // experts are selected from the best `groups_used` groups
  int groups_used = 1;
};

struct TopKParams {
  int k = 1;
};

using OpParams =
    std::variant<NoParams, EmbedParams, NgramParams, NormParams, SparsifyParams, SinkhornParams, ScaleParams,
                 ClampParams, UnaryParams, XieluParams, GatedActivationParams, SliceParams, RopeTableParams, RopeParams,
                 PositionFactorParams, AttentionParams, SelectParams, SparseAttentionParams, ShortConvParams,
                 GatedPoolParams, DeltaRuleParams, MoeRouteParams, TopKParams>;

struct OpInfo {
  Op op;
  std::string_view name;  // also the file name of its kernels in every backend
  int min_inputs, max_inputs, n_outputs;
  bool has_weight;  // an input, see weight_input(), is a model weight that decides where the node runs
  bool has_cache;   // works on the paged KV cache, or on a recurrent state:
  bool has_state = false;
};

// How b, the second operand of kAdd, kMul or kGatedActivation, is broadcast: element i of a row of a is paired with
// element i / repeat % period of the same row of b, or of its only row.
struct OperandMatch {
  bool by_row;
  int64_t repeat, period;
};
OperandMatch match_operands(const TensorDesc& a, const TensorDesc& b);

// All operations, in the order of the enumeration.
std::span<const OpInfo> all_ops();
const OpInfo& op_info(Op op);
// The input that has_weight refers to.
int weight_input(Op op);

// "silu", "gelu_tanh", ...
std::string_view unary_name(UnaryKind kind);

}  // namespace infer
