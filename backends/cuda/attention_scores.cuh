// Shared by the attention kernels on tensor cores: their rows of queries, scores in the layout of mma accumulators, and
// rows of the cache as fp16.
#pragma once

#include "backends/cuda/attention_shape.cuh"

namespace infer::cuda {

constexpr float kLog2E = 1.44269504f;

// The tokens of a block that belong to one run, and the positions that they see.
struct RunPart {
  int begin, end;  // tokens
  int kv_head, sequence;
  Range seen;
};

// The rows of a block: from `token` on, `heads` consecutive ones of each token, which begin at `head` of the group.
struct RowsOfBlock {
  int token, head, heads, count;
};

// One row of queries.
struct QueryRow {
  int token, head, position;
  Range seen;  // empty for a missing row
  float slope;
};
__device__ inline QueryRow query_row(const AttentionShape& a, const RunPart& run, const RowsOfBlock& rows, int row) {
  QueryRow q = {run.begin, run.kv_head * a.group, 0, {0, 0}, 0};
  const int token = rows.token + row / rows.heads, head = rows.head + row % rows.heads;
  if (token < run.begin || token >= run.end || head >= a.group || row >= rows.count / rows.heads * rows.heads) return q;
  q.token = token;
  q.head = run.kv_head * a.group + head;
  q.position = a.cache.positions[token];
  q.seen = visible(a.params, q.position, a.cache.lengths[run.sequence]);
  q.slope = alibi_slope(q.head, a.n_head, a.params.alibi_max_bias);
  return q;
}

// Calls f(run) for the runs among a block's `tokens` tokens from `begin` on, without the short ones.
template <typename F>
__device__ inline void for_each_run(const AttentionShape& a, int begin, int tokens, int kv_head, F f) {
  const int end = begin + tokens < a.count.rows() ? begin + tokens : a.count.rows();
  const CacheShape& s = a.cache;
  for (int token = begin, next; token < end; token = next) {
    const int sequence = s.sequences[token];
    for (next = token + 1; next < end && s.sequences[next] == sequence;) ++next;
    if (!in_long_run(a, token)) continue;
    const int length = s.lengths[sequence];
    const Range first = visible(a.params, s.positions[token], length);
    const Range last = visible(a.params, s.positions[next - 1], length);
    f(RunPart{token, next, kv_head, sequence, {first.begin, last.end}});
  }
}

// ---- Rows of the cache ----

// Values i to i + 7 of a row; those past its end are zeros.
__device__ inline Floats8 row_floats(const CacheRow& row, int dim, int i, bool vectors) {
  if (vectors) return row.load8(i);
  Floats8 x;
  INFER_UNROLL
  for (int j = 0; j < 8; ++j) x.at[j] = i + j < dim ? row.at(i + j) : 0.0f;
  return x;
}
__device__ inline uint4 to_halves(const Floats8& x) {
  return make_uint4(pack_halves(x.at[0], x.at[1]), pack_halves(x.at[2], x.at[3]), pack_halves(x.at[4], x.at[5]),
                    pack_halves(x.at[6], x.at[7]));
}

// A row of BF16 values, which may exceed fp16, by kLanes consecutive lanes with kChunks chunks of 8 values each: calls
// put(chunk, halves) for every chunk up to kLanes * kChunks. Returns the power of two that the halves are to be
// multiplied by: 1 unless a value is 2^16 or more. A row that is not wanted becomes zeros. All lanes of the warp call
// it.
template <int kLanes, int kChunks, typename Put>
__device__ inline float put_bf16_row(const uint8_t* row, int dim, bool vectors, bool wanted, Put put) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  Floats8 x[kChunks];
  uint32_t most = 0;
  INFER_UNROLL
  for (int c = 0; c < kChunks; ++c) {
    const int i = 8 * (lane + c * kLanes);
    x[c] = wanted && i < dim ? row_floats({row, DataType::kBF16}, dim, i, vectors) : Floats8{};
    INFER_UNROLL
    for (int j = 0; j < 8; ++j) {
      const uint32_t bits = __float_as_uint(x[c].at[j]) & 0x7fffffffu;
      most = bits > most ? bits : most;
    }
  }
  INFER_UNROLL
  for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) {
    const uint32_t other = __shfl_xor_sync(kAllLanes, most, lanes);
    most = other > most ? other : most;
  }
  // The largest value comes to have the exponent 15.
  const uint32_t exponent = most >> 23, divided = exponent < 127u + 16u ? 127u + 15u : exponent;
  const float inverse = __uint_as_float((254u + 15u - divided) << 23);
  INFER_UNROLL
  for (int c = 0; c < kChunks; ++c) {
    INFER_UNROLL
    for (int j = 0; j < 8; ++j) x[c].at[j] *= inverse;
    put(lane + c * kLanes, to_halves(x[c]));
  }
  return __uint_as_float((divided - 15u) << 23);
}

// ---- Scores ----

// Of a warp's 16 rows and kPositions positions.
template <int kPositions>
struct Scores {
  float of[kPositions / 8][4];  // [16 rows][8 positions] each
};

// Changes the scores of a warp: f(score, which of the lane's rows, position).
template <int kPositions, typename F>
__device__ __forceinline__ void change_scores(int first, Scores<kPositions>& scores, F f) {
  const int t = static_cast<int>(threadIdx.x % 4);
  INFER_UNROLL
  for (int j = 0; j < kPositions / 8; ++j) {
    INFER_UNROLL
    for (int i = 0; i < 4; ++i) scores.of[j][i] = f(scores.of[j][i], i / 2, first + 8 * j + 2 * t + i % 2);
  }
}

// Scales, caps, biases and masks the dot products with the keys, skipping what does not apply.
template <int kPositions>
__device__ inline void finish_scores(const AttentionShape& a, const QueryRow (&rows)[2], int first,
                                     Scores<kPositions>& scores) {
  const AttentionParams& p = a.params;
  change_scores(first, scores, [&](float score, int, int) { return score * p.scale; });
  if (p.softcap > 0) {
    change_scores(first, scores, [&](float score, int, int) { return p.softcap * tanhf(score / p.softcap); });
  }
  if (p.alibi_max_bias > 0) {
    change_scores(first, scores, [&](float score, int i, int position) {
      const int distance = rows[i].position > position ? rows[i].position - position : position - rows[i].position;
      return score - rows[i].slope * static_cast<float>(distance);
    });
  }
  const auto sees_all = [&](const Range& seen) { return seen.begin <= first && seen.end >= first + kPositions; };
  if (sees_all(rows[0].seen) && sees_all(rows[1].seen)) return;
  change_scores(first, scores, [&](float score, int i, int position) {
    return position >= rows[i].seen.begin && position < rows[i].seen.end ? score : -INFINITY;
  });
}

// Turns the scores of one of the lane's rows into weights relative to the largest score so far. Returns the factor of
// the earlier sums. The total covers the lane's share, a quarter of the positions.
template <int kPositions>
__device__ inline float weigh_row(Scores<kPositions>& scores, int which, Partial& so_far) {
  float largest = so_far.largest;
  INFER_UNROLL
  for (const auto& tile : scores.of) largest = fmaxf(largest, fmaxf(tile[2 * which], tile[2 * which + 1]));
  largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 1));
  largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 2));
  const float base = largest == -INFINITY ? 0.0f : largest * kLog2E;  // nothing seen: all weights are zero
  const float factor = fast_exp2(fmaf(so_far.largest, kLog2E, -base));
  float total = 0;
  INFER_UNROLL
  for (auto& tile : scores.of) {
    INFER_UNROLL
    for (int i = 2 * which; i < 2 * which + 2; ++i) total += tile[i] = fast_exp2(fmaf(tile[i], kLog2E, -base));
  }
  so_far = {largest, fmaf(so_far.total, factor, total)};
  return factor;
}

// The factor of a row's sums, once its lanes' shares of the total are added. All lanes of the warp call it.
__device__ inline float finish_row(const AttentionShape& a, const QueryRow& row, Partial all) {
  all.total += __shfl_xor_sync(kAllLanes, all.total, 1);
  all.total += __shfl_xor_sync(kAllLanes, all.total, 2);
  return finish_head(a, all, row.token, row.head, false);
}

// The left operand of the products with values: 16 positions of weights, from the tile before `next` on.
template <int kPositions>
__device__ __forceinline__ void weights_of(const Scores<kPositions>& scores, int part, uint32_t (&to)[4]) {
  const float(&left)[4] = scores.of[2 * part], (&right)[4] = scores.of[2 * part + 1];
  to[0] = pack_halves(left[0], left[1]);
  to[1] = pack_halves(left[2], left[3]);
  to[2] = pack_halves(right[0], right[1]);
  to[3] = pack_halves(right[2], right[3]);
}

}  // namespace infer::cuda
