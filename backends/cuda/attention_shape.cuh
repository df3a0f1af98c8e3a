// Shared by the attention kernels: which entries a token sees, and how partial softmaxes are merged.
#pragma once

#include "backends/cuda/attention.cuh"

namespace infer::cuda {

struct AttentionShape {
  CacheShape cache;
  RowCount count;
  int n_head, group, chunks;  // query heads; query heads per KV head; blocks that share these
  AttentionParams params;
  int64_t q_stride;
  int n_chunks;   // blocks that share the splits of a token
  bool vectors;   // rows of the cache can be read 8 values at a time
  bool in_tiles;  // attend_in_tiles() computes the tokens of long runs
  const float* sinks;
  // kSparse: selected blocks [T, selections, count] of `block` entries each, or null for all entries in the window, and
  // the log-sum-exp of each head [T, n_head].
  const int32_t* blocks;
  int selections, count_of_blocks, block;
  float* log_sums;
};

struct Range {
  int begin, end;
};
// The positions that a token sees (op.h), without selected blocks.
__device__ inline Range visible(const AttentionParams& p, int position, int length) {
  const int before = p.causal ? p.window - 1 : p.window / 2;
  const int end = p.causal ? position + 1 : length;
  if (p.window == 0) return {0, end};
  if (p.chunked) return {position / p.window * p.window, end};
  const int after = position + before + 1;
  return {position - before > 0 ? position - before : 0, p.causal ? end : after < end ? after : end};
}

// https://arxiv.org/abs/2108.12409: geometric slopes; the heads after the largest power of two are interleaved from the
// next one.
__device__ inline float alibi_slope(int head, int n_head, float max_bias) {
  if (max_bias <= 0) return 0;
  int power = 1;
  while (power * 2 <= n_head) power *= 2;
  const float exponent = head < power
                             ? -max_bias * static_cast<float>(head + 1) / static_cast<float>(power)
                             : -max_bias / 2 * static_cast<float>(2 * (head - power) + 1) / static_cast<float>(power);
  return exp2f(exponent);
}

// A partial softmax: the largest score, and the sum of the weights relative to it.
struct Partial {
  float largest, total;
};

// a and b merged, and the factors for the sums of each.
struct Merge {
  Partial both;
  float factor_a, factor_b;
};
__device__ inline Merge merge(const Partial& a, const Partial& b) {
  const float largest = fmaxf(a.largest, b.largest);
  const float fa = a.total > 0 ? expf(a.largest - largest) : 0.0f, fb = b.total > 0 ? expf(b.largest - largest) : 0.0f;
  return {{largest, a.total * fa + b.total * fb}, fa, fb};
}

// Merges the sink, a score without a value, and returns the factor that turns a head's sums into its result. With
// `write`, also stores the log-sum-exp, if there is one.
__device__ inline float finish_head(const AttentionShape& a, const Partial& all, int64_t token, int head, bool write) {
  const Merge m = a.sinks ? merge(all, {a.sinks[head], 1.0f}) : Merge{all, 1.0f, 0.0f};
  const bool any = all.total > 0;
  if (a.log_sums && write) {
    a.log_sums[token * a.n_head + head] = any ? m.both.largest + logf(m.both.total) : kNothingSeen;
  }
  return any ? m.factor_a / m.both.total : 0.0f;
}

// Whether at least kLongRun consecutive rows around this token, a run, belong to its sequence.
constexpr int kLongRun = 8;
__device__ inline bool in_long_run(const AttentionShape& a, int64_t token) {
  const int32_t* const sequences = a.cache.sequences;
  const int64_t rows = a.count.rows();
  int n = 1;
  for (int64_t i = token - 1; i >= 0 && n < kLongRun && sequences[i] == sequences[token]; --i) ++n;
  for (int64_t i = token + 1; i < rows && n < kLongRun && sequences[i] == sequences[token]; ++i) ++n;
  return n >= kLongRun;
}

// Attention of long runs on tensor cores. Queries, weights and rows of the cache are rounded to fp16.
bool has_tiles(const OpDesc& op);
void attend_in_tiles(const Launch& launch, CudaStream& stream, const AttentionShape& a);
// Of these, the one for latent caches.
bool has_latent_tiles(const CacheDesc& cache);
void attend_latent(const Launch& launch, CudaStream& stream, const AttentionShape& a);

}  // namespace infer::cuda
