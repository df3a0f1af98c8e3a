// The kernels of one instruction set level: plain functions over memory, filled in by kernels_<isa>.cpp and
// kernels_<isa>_floats.cpp. A kernel
// computes the same bits on every level. The operations' files (matmul.cpp, ...) split the work among threads and call
// these.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <type_traits>

#include "ggml-like/float_math.h"
#include "ggml-like/op.h"
#include "ggml-like/quant/activation.h"
#include "ggml-like/quant/blocks.h"
#include "ggml-like/quant/tables.h"

namespace infer::cpu {

// Rows [row_begin, row_end) of a weight matrix times the activations of n_tokens tokens: out[t][row]. Quantized types:
// `x` is Activation256 x[k / 256][x_stride] or Activation32 x[k / 32][x_stride], depending on the type. x_stride is the
// number of tokens rounded up to kTokenPadding; unless there is one token, padding tokens hold values too. Float types:
// `x` is const float* const*, a row of k values per token. `scratch` has matmul_scratch_bytes(n_tokens, k), 64-byte
// aligned. Weights are prefetched in order up to `stream_end`, where this thread's part ends, and then from `next` on.
struct MatmulArgs {
  DataType type;
  const uint8_t* weight;
  int64_t row_bytes;
  int64_t k;
  const void* x;
  int64_t x_stride;
  int64_t n_tokens;
  float* const* out;  // one row per token
  int64_t row_begin, row_end;
  const uint8_t *stream_end, *next;
  float* scratch;
};
using MatmulKernel = void (*)(const MatmulArgs&);

// Whether a level's kernels for one and two tokens of Q8_0 read the weights in memory order.
enum class InOrder { kNever, kPossible, kDefault };

inline constexpr int kTokenPadding = 4;
inline constexpr int kMatmulRows = 48;  // a thread gets a multiple of this, if there are enough rows
inline int64_t padded_tokens(int64_t n) { return (n + kTokenPadding - 1) / kTokenPadding * kTokenPadding; }
inline constexpr int kMostInOrderTokens = 4;  // the limit of gemm_in_order.h
inline constexpr int kLaneTokens = 8;         // the limit of gemm_token_lanes.h
inline constexpr int kMostSmallTokens = 8;    // the limit of few_small.h
// A GEMM with float weights: its blocks in rows, tokens and k, and the scratch memory of one block.
inline constexpr int kFloatBlockRows = 24, kFloatBlockTokens = 96, kFloatChunk = 1024;
inline constexpr int64_t kFloatScratchBytes =
    kFloatBlockRows * (kFloatChunk + kFloatBlockTokens * 16) * int64_t{sizeof(float)};
inline constexpr int kFloatGemmTokens = 12;  // with fewer tokens, float weights are read as one stream
// Kernels that read weights in memory order take sixteen blocks at a time, across the ends of rows. For rows of
// `blocks` blocks, returns after how many sixteens they are at the beginning of a row again.
inline int64_t in_order_phases(int64_t blocks) {
  for (int i = 0; i < 4 && blocks % 2 == 0; ++i) blocks /= 2;
  return blocks;
}
// Scratch memory of a thread for up to n_tokens: a matmul may run with fewer tokens than it was prepared for, for an
// expert or in a step that does not fill its bucket.
inline size_t matmul_scratch_bytes(int64_t n_tokens, int64_t k) {
  const int64_t panels = padded_tokens(n_tokens) * kMatmulRows * static_cast<int64_t>(sizeof(float)) + 16 * 512;
  // Per block and token, StreamInputs has at most 8 vectors of pairs, 16 values and 256 codes, which is more than the
  // inputs of few_blocks.h.
  const int64_t streams = kMostInOrderTokens * (k / 256 * (8 * 64 + 64 + 256) + 64);
  // InputsQ80: codes and offsets per sixteen blocks, and 16 values per block.
  const int64_t blocks = k / 32, small_streams = 2 * (in_order_phases(blocks) * (512 + 64) + (16 * blocks + 16) * 4);
  // SmallInput of few_small.h.
  const int64_t few_small = kMostSmallTokens * blocks * 48;
  // LaneInputs: per block, 256 codes for each token, and at most 16 vectors.
  const int64_t lanes = n_tokens <= kMostInOrderTokens ? 0 : k / 256 * (kLaneTokens * 256 + 16 * 64);
  const int64_t floats = n_tokens < kFloatGemmTokens ? 0 : kFloatScratchBytes;
  return static_cast<size_t>(std::max({panels, streams, small_streams, few_small, lanes, floats}));
}

// Types of keys and values that attention decodes to F32 before use, a block of 32 tokens at a time: codes of 4 or 5
// bits below a scale, as indices of a codebook or plus `lowest`, and perhaps a minimum.
struct PackedCacheType {
  DataType type;
  int lowest;
  bool has_minimum, has_fifth_bits, has_codebook;
  constexpr int n_f16() const { return has_minimum ? 2 : 1; }  // F16 values at the start of a block
  constexpr int block_bytes() const { return 2 * n_f16() + (has_fifth_bits ? 4 : 0) + 16; }
};
inline constexpr PackedCacheType kPackedCacheTypes[] = {{DataType::kQ4_1, 0, true, false, false},
                                                        {DataType::kQ5_0, -16, false, true, false},
                                                        {DataType::kQ5_1, 0, true, true, false},
                                                        {DataType::kIQ4_NL, 0, false, false, true}};
// The index of a type, or -1.
constexpr int packed_cache_type(DataType type) {
  int found = -1;
  for (int i = 0; i < static_cast<int>(std::size(kPackedCacheTypes)); ++i) {
    if (kPackedCacheTypes[i].type == type) found = i;
  }
  return found;
}

// One (token, head group) unit of attention: the queries of `n_queries` tokens with consecutive positions that share a
// sequence, for the `heads` query heads of one KV head.
struct AttentionArgs {
  const AttentionParams* params;
  int key_dim, value_dim;
  DataType key_type, value_type;  // F32, F16, BF16, Q8_0, Q4_0 or of kPackedCacheTypes
  bool latent;           // a block holds [32 tokens][key_dim]; the first value_dim values of a key are its value
  const uint8_t* cache;  // of the layer
  int64_t block_bytes, head_key_offset, head_value_offset;  // bytes: per block, and of this KV head inside a block
  int64_t key_bytes, value_bytes;                           // of this KV head in a block; latent: keys only
  const int32_t* table;
  int position;  // of the first query
  int sequence_length;
  int n_queries, heads;
  const float* query;  // [n_queries][query_stride], heads * key_dim used
  int64_t query_stride;
  const float* slopes;  // [heads]
  const float* sinks;   // [heads] or null
  float* out;           // [n_queries][out_stride], heads * value_dim written
  int64_t out_stride;
  float* log_sums;  // [n_queries][log_sums_stride], heads written; the log-sum-exp of scores and sink; null: not stored
  int64_t log_sums_stride;
  float* scratch;  // attention_scratch_floats(), then decoded_floats() of each type
};
inline constexpr int kMaxQueryTile = 8;
inline constexpr int kMaxAttentionRows = 64;  // (query, head) pairs that read keys and values together
inline size_t attention_scratch_floats(int key_dim, int value_dim) {
  const auto padded = [](int dim) { return static_cast<size_t>((dim + 15) / 16 * 16); };
  return kMaxQueryTile * (kAttentionSplit + padded(value_dim)) +
         kMaxAttentionRows * (padded(value_dim) + padded(key_dim)) + 64;
}

// Floats of a decoded block of rows of n values.
inline size_t decoded_floats(DataType type, int n) {
  return packed_cache_type(type) < 0 ? 0 : static_cast<size_t>(kBlockTokens) * static_cast<size_t>(n);
}

// The queries of one token and the 32 index keys of a block.
struct IndexScoresArgs {
  DataType type;  // of the keys
  int key_dim, heads;
  const uint8_t* block;  // [32 tokens][key_dim]
  const float* queries;  // [heads][key_dim rounded up to 16], zero-padded
  const float* weights;  // [heads], or null: ones
  bool sum_heads;        // see SelectParams
  float* scores;         // [heads][scores_stride], 32 written in each row; a single row with sum_heads
  int64_t scores_stride;
  float* scratch;  // decoded_floats(); null if it is 0
};

// Operations on recurrent states: consecutive tokens of one sequence, and a part of their channels, heads or columns.
// Pointers are those of the first token, strides are in values.
struct ShortConvArgs {
  const float* x;       // [n_tokens][x_stride]
  const float* weight;  // [channels][width]
  const float* bias;    // [channels] or null
  float* y;             // [n_tokens][y_stride]
  float* state;         // [(width - 1) * dilation][channels]
  int64_t x_stride, y_stride;
  int64_t channels, begin, end;  // computes channels [begin, end)
  int width, dilation, n_tokens;
  bool silu;
};
struct GatedPoolArgs {
  const float *x, *gates;  // [n_tokens][stride], parts * dim used
  const float* offsets;    // [block][parts * dim] or null
  float* y;                // [n_tokens][dim]
  float* state;            // [parts][3][dim]
  int64_t x_stride, gates_stride;
  int parts, dim, block;
  int position, n_tokens;  // position of the first token
  int begin, end;          // computes channels [begin, end)
};
struct SelectiveScanArgs {
  const float *x, *dt, *b, *c;  // per token [heads * dim], [heads] and twice [groups * n_state]
  const float* a;               // [heads], or [heads][n_state] if a_per_value
  const float* skip;            // [heads] or null
  float* y;                     // per token [heads * dim]
  float* state;                 // [heads][dim][n_state]
  int64_t x_stride, dt_stride, b_stride, c_stride, y_stride;
  int heads_per_group, dim, n_state;
  int head_begin, head_end, n_tokens;
  bool a_per_value;
};
// One head.
struct DeltaRuleArgs {
  const float *q, *k, *v, *dt, *beta;  // per token twice [key_dim], [value_dim], [1] or [key_dim], [1]
  float a, lowest_decay;
  float* y;       // per token [value_dim]
  float* state;   // [key_dim][value_dim]
  float* decays;  // work space [key_dim]
  int64_t q_stride, k_stride, v_stride, dt_stride, beta_stride, y_stride;
  int key_dim, value_dim;
  int begin, end, n_tokens;  // computes columns [begin, end)
  bool dt_per_channel;
};
// One head; RWKV-7 has a and b.
struct WkvArgs {
  const float *r, *k, *v, *w, *a, *b;  // per token [dim]
  const float* first;                  // [dim]
  float *y, *bonus;                    // per token [dim]
  float* state;                        // [dim][dim]
  float* decays;                       // work space [dim]
  int64_t r_stride, k_stride, v_stride, w_stride, a_stride, b_stride, y_stride;
  int dim;
  int begin, end, n_tokens;  // computes columns [begin, end)
};

// The kernels for one weight type, by the number of tokens. All compute the same bits.
struct MatmulKernels {
  struct Range {
    int64_t most_tokens;
    MatmulKernel kernel;
  };
  DataType type;
  Range ranges[5];  // ascending; the first that fits is used, and the last fits kAny tokens
  // For one and two tokens; faster than the first ranges on some processors (KernelChoice). Both or none.
  MatmulKernel other_gemv = nullptr, other_of_two = nullptr;

  MatmulKernel for_tokens(int64_t n) const {
    const Range* range = ranges;
    while (n > range->most_tokens) ++range;
    return range->kernel;
  }
};
inline constexpr int64_t kAny = INT64_MAX;  // tokens

// For quantized types without kernels on a level: the scalar dot of the type's table, row by row.
void gemm_by_dots(const MatmulArgs& args);

// The kernels of a level that multiply by weights, and the probes.
struct MatmulTable {
  const char* level;             // "avx512vnni"
  const MatmulKernels* matmuls;  // one row per weight type; gemm_by_dots() is used for the others
  int n_matmuls;
  // Peak throughput (kernels/probes.h). probe_read reads n bytes, a multiple of 256, and returns a value that depends
  // on them. The others run `turns` iterations of byte dot products or of F32 multiply-adds and return the number of
  // operations.
  int32_t (*probe_read)(const uint8_t* p, int64_t n);
  int64_t (*probe_dot)(int64_t turns);
  int64_t (*probe_fma)(int64_t turns);
};

// The other kernels. Levels that differ only in their dot products of bytes share them.
struct FloatTable {
  void (*quantize256)(const float* x, Activation256* out, int64_t out_stride, int64_t n_blocks);
  void (*quantize32)(const float* x, Activation32* out, int64_t out_stride, int64_t n_blocks);
  // Vectors of n values; weight and bias may be null.
  void (*rms_norm)(const float* x, const float* weight, float eps, float* y, int64_t n);
  void (*layer_norm)(const float* x, const float* weight, const float* bias, float eps, float* y, int64_t n);
  float (*rms)(const float* x, int64_t n);
  void (*sparsify)(const float* x, float factor, float* y, int64_t n);
  void (*add)(const float* a, const float* b, float* y, int64_t n);
  void (*mul)(const float* a, const float* b, float* y, int64_t n);
  void (*scale)(const float* x, float factor, float* y, int64_t n);
  void (*unary)(UnaryKind kind, const float* x, float* y, int64_t n);
  void (*xielu)(const XieluParams& params, const float* x, float* y, int64_t n);
  void (*gated)(const GatedActivationParams& params, const float* gate, const float* up, float* y, int64_t n);
  void (*rope)(const float* x, const float* table, int n_dims, bool interleaved, float* y, int64_t head_dim);
  void (*softmax)(const float* x, float* y, int64_t n);  // probabilities
  // Maximum and sum of exp(x - maximum): their log-sum-exp is maximum + log(sum).
  void (*max_and_sum)(const float* x, int64_t n, float* maximum, float* sum);
  void (*weighted_add)(const float* x, float weight, float* y, int64_t n);  // y = fma(x, weight, y)
  void (*to_f16)(const float* x, uint16_t* y, int64_t n);
  void (*attention)(const AttentionArgs&);
  void (*index_scores)(const IndexScoresArgs&);
  void (*short_conv)(const ShortConvArgs&);
  void (*gated_pool)(const GatedPoolArgs&);
  void (*scan)(const SelectiveScanArgs&);
  void (*delta_rule)(const DeltaRuleArgs&);
  void (*wkv)(const WkvArgs&);
};

struct KernelTable : MatmulTable, FloatTable {};

}  // namespace infer::cpu
