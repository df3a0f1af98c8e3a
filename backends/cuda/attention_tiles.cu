// Attention of long runs of tokens on tensor cores. A block takes 64 rows: tokens of a run times the query heads that
// share a KV head; a warp takes 16 of them. Tiles of keys and values pass through shared memory as fp16: the values of
// a tile are loaded while its scores are computed, the keys of the next tile while the values are summed. The softmax
// is adjusted after each tile (https://arxiv.org/abs/2307.08691). Its weights stay in registers between the
// accumulators of one matmul and the operand of the next.
#include <algorithm>

#include "backends/cuda/attention_shape.cuh"
#include "backends/cuda/launch.h"

namespace infer::cuda {
namespace {

constexpr int kRows = 64;  // of queries, in a block
constexpr int kThreads = 128;
constexpr int kMostDim = 256;
constexpr float kLog2E = 1.44269504f;

// Rows of kDim fp16 values in chunks of 16 bytes, permuted within each row so that 8 consecutive rows use different
// banks.
template <int kDim>
struct RowTile {
  static constexpr int kPositions = kDim > 128 ? 32 : 64, kChunks = kDim / 8;
  uint4 chunk[kPositions * kChunks];
  __device__ uint4* at(int row, int i) { return chunk + row * kChunks + (i ^ (row & 7)); }
};
template <int kDim>
struct TileRoom {
  RowTile<kDim> keys, values;
};

// The tokens of a block that belong to one run, and the positions that they see.
struct RunPart {
  int begin, end;  // tokens
  int kv_head, sequence;
  Range seen;
};

// One row of queries.
struct QueryRow {
  int token, head, position;
  Range seen;  // empty for a missing row
  float slope;
};
__device__ inline QueryRow query_row(const AttentionShape& a, const RunPart& run, int first_token, int row) {
  QueryRow q = {run.begin, 0, 0, {0, 0}, 0};
  const int token = first_token + row / a.group;
  if (token < run.begin || token >= run.end || row >= kRows / a.group * a.group) return q;
  q.token = token;
  q.head = run.kv_head * a.group + row % a.group;
  q.position = a.cache.positions[token];
  q.seen = visible(a.params, q.position, a.cache.lengths[run.sequence]);
  q.slope = alibi_slope(q.head, a.n_head, a.params.alibi_max_bias);
  return q;
}

// A warp's 16 rows of queries as the left operand of matmuls.
template <int kDim>
struct QueryHalves {
  uint32_t of[kDim / 16][4];
};
template <int kDim>
__device__ inline void load_queries(const AttentionShape& a, const QueryRow (&rows)[2], const float* q,
                                    QueryHalves<kDim>& to) {
  const int t = static_cast<int>(threadIdx.x % 4), dim = a.cache.key_dim;
  INFER_UNROLL
  for (int part = 0; part < kDim / 16; ++part) {
    INFER_UNROLL
    for (int i = 0; i < 4; ++i) {
      const QueryRow& row = rows[i % 2];
      const int d = 16 * part + 8 * (i / 2) + 2 * t;
      const float* const from = q + int64_t{row.token} * a.q_stride + row.head * dim + d;
      to.of[part][i] = pack_halves(d < dim ? from[0] : 0.0f, d + 1 < dim ? from[1] : 0.0f);
    }
  }
}

// Values i to i + 7 of a row as fp16; those past its end are zeros.
__device__ inline uint4 row_chunk(const CacheRow& row, int dim, int i, bool vectors) {
  Floats8 x;
  if (vectors) {
    x = row.load8(i);
  } else {
    INFER_UNROLL
    for (int j = 0; j < 8; ++j) x.at[j] = i + j < dim ? row.at(i + j) : 0.0f;
  }
  return make_uint4(pack_halves(x.at[0], x.at[1]), pack_halves(x.at[2], x.at[3]), pack_halves(x.at[4], x.at[5]),
                    pack_halves(x.at[6], x.at[7]));
}

// Queues the keys or values of the positions from `first` on, and ends a group of copies. Positions that no token of
// the run sees become zeros: their memory may hold anything. Only rows that are fp16 in the cache are copied
// asynchronously.
template <int kDim, bool kKeys>
__device__ inline void queue_tile(const AttentionShape& a, const RunPart& run, int first, RowTile<kDim>& tile) {
  using Tile = RowTile<kDim>;
  const CacheShape& s = a.cache;
  const DataType type = kKeys ? s.key_type : s.value_type;
  const int dim = kKeys ? s.key_dim : s.value_dim;
  // Calls f(target, row of the cache, chunk, whether it is to be loaded) for the thread's chunks.
  const auto each = [&](auto f) {
    for (int i = static_cast<int>(threadIdx.x); i < Tile::kPositions * Tile::kChunks; i += kThreads) {
      const int row = i / Tile::kChunks, chunk = i % Tile::kChunks, position = first + row;
      const bool wanted = position >= run.seen.begin && position < run.seen.end && 8 * chunk < dim;
      uint8_t* const block = s.block_of(run.sequence, wanted ? position : run.seen.begin);
      const int slot = position % kBlockTokens;
      f(tile.at(row, chunk), kKeys ? s.key(block, run.kv_head, slot) : s.value(block, run.kv_head, slot), chunk,
        wanted);
    }
  };
  if (type == DataType::kF16 && a.vectors) {
    each([&](uint4* to, const uint8_t* row, int chunk, bool wanted) {
      copy_async(to, wanted ? row + 16 * chunk : row, wanted);
    });
  } else {
    each([&](uint4* to, const uint8_t* row, int chunk, bool wanted) {
      store_vector(to, wanted ? row_chunk({row, type}, dim, 8 * chunk, a.vectors) : make_uint4(0, 0, 0, 0));
    });
  }
  commit_copies();
}

template <int kDim>
struct Scores {
  float of[RowTile<kDim>::kPositions / 8][4];  // [16 rows][8 positions] each
};

template <int kDim>
__device__ __forceinline__ void multiply_keys(const QueryHalves<kDim>& q, RowTile<kDim>& keys, Scores<kDim>& scores) {
  // The lane supplies the address of a row of the matrices (first, left), (first, right), (second, left), (second,
  // right) of two times 8 positions by 16 values.
  const int lane = static_cast<int>(threadIdx.x % kWarp), row = lane % 8 + lane / 16 * 8, right = lane / 8 % 2;
  INFER_UNROLL
  for (int part = 0; part < kDim / 16; ++part) {
    INFER_UNROLL
    for (int j = 0; j < RowTile<kDim>::kPositions / 8; j += 2) {
      uint32_t b[4];
      load_matrices(b, keys.at(8 * j + row, 2 * part + right));
      const uint32_t first[2] = {b[0], b[1]}, second[2] = {b[2], b[3]};
      multiply_add(scores.of[j], q.of[part], first);
      multiply_add(scores.of[j + 1], q.of[part], second);
    }
  }
}

// Changes the scores of a warp: f(score, which of the lane's rows, position).
template <int kDim, typename F>
__device__ __forceinline__ void change_scores(int first, Scores<kDim>& scores, F f) {
  const int t = static_cast<int>(threadIdx.x % 4);
  INFER_UNROLL
  for (int j = 0; j < RowTile<kDim>::kPositions / 8; ++j) {
    INFER_UNROLL
    for (int i = 0; i < 4; ++i) scores.of[j][i] = f(scores.of[j][i], i / 2, first + 8 * j + 2 * t + i % 2);
  }
}

// Scales, caps, biases and masks the dot products with the keys, skipping what does not apply.
template <int kDim>
__device__ inline void finish_scores(const AttentionShape& a, const QueryRow (&rows)[2], int first,
                                     Scores<kDim>& scores) {
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
  const auto sees_all = [&](const Range& seen) {
    return seen.begin <= first && seen.end >= first + RowTile<kDim>::kPositions;
  };
  if (sees_all(rows[0].seen) && sees_all(rows[1].seen)) return;
  change_scores(first, scores, [&](float score, int i, int position) {
    return position >= rows[i].seen.begin && position < rows[i].seen.end ? score : -INFINITY;
  });
}

// Turns the scores of one of the lane's rows into weights relative to the largest score so far. Returns the factor of
// the earlier sums. The total covers the lane's share, a quarter of the positions.
template <int kDim>
__device__ inline float weigh_row(Scores<kDim>& scores, int which, Partial& so_far) {
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

template <int kDim>
struct ValueSums {
  float of[kDim / 8][4];  // [16 rows][8 values] each
};

template <int kDim>
__device__ __forceinline__ void add_values(const Scores<kDim>& weights, RowTile<kDim>& values, ValueSums<kDim>& sums) {
  // Matrices of positions by values: (first, left), (second, left), (first, right), (second, right), transposed.
  const int lane = static_cast<int>(threadIdx.x % kWarp), row = lane % 16, right = lane / 16;
  INFER_UNROLL
  for (int part = 0; part < RowTile<kDim>::kPositions / 16; ++part) {
    const float(&left)[4] = weights.of[2 * part], (&next)[4] = weights.of[2 * part + 1];
    const uint32_t a[4] = {pack_halves(left[0], left[1]), pack_halves(left[2], left[3]), pack_halves(next[0], next[1]),
                           pack_halves(next[2], next[3])};
    INFER_UNROLL
    for (int j = 0; j < kDim / 8; j += 2) {
      uint32_t b[4];
      load_transposed(b, values.at(16 * part + row, j + right));
      const uint32_t first[2] = {b[0], b[1]}, second[2] = {b[2], b[3]};
      multiply_add(sums.of[j], a, first);
      multiply_add(sums.of[j + 1], a, second);
    }
  }
}

template <int kDim>
__device__ inline void write_row(const AttentionShape& a, const QueryRow& row, int which, Partial all,
                                 const ValueSums<kDim>& sums, float* out) {
  all.total += __shfl_xor_sync(kAllLanes, all.total, 1);
  all.total += __shfl_xor_sync(kAllLanes, all.total, 2);
  if (row.seen.begin >= row.seen.end) return;
  const float factor = finish_head(a, all, row.token, row.head, false);
  float* const to = out + (int64_t{row.token} * a.n_head + row.head) * a.cache.value_dim;
  const int t = static_cast<int>(threadIdx.x % 4);
  INFER_UNROLL
  for (int j = 0; j < kDim / 8; ++j) {
    INFER_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int d = 8 * j + 2 * t + i;
      if (d < a.cache.value_dim) to[d] = sums.of[j][2 * which + i] * factor;
    }
  }
}

template <int kDim>
__device__ void attend_run(const AttentionShape& a, const RunPart& run, int first_token, const float* q,
                           TileRoom<kDim>& room, float* out) {
  constexpr int kPositions = RowTile<kDim>::kPositions;
  const int row = static_cast<int>(threadIdx.x / kWarp * 16 + threadIdx.x % kWarp / 4);
  const QueryRow rows[2] = {query_row(a, run, first_token, row), query_row(a, run, first_token, row + 8)};
  const int begin = run.seen.begin / kPositions * kPositions;
  queue_tile<kDim, true>(a, run, begin, room.keys);
  QueryHalves<kDim> queries;
  load_queries(a, rows, q, queries);
  Partial so_far[2] = {{-INFINITY, 0}, {-INFINITY, 0}};
  ValueSums<kDim> sums = {};
  for (int first = begin; first < run.seen.end; first += kPositions) {
    queue_tile<kDim, false>(a, run, first, room.values);
    wait_copies<1>();
    __syncthreads();  // the keys have arrived
    Scores<kDim> scores = {};
    multiply_keys(queries, room.keys, scores);
    __syncthreads();  // the keys have been read
    if (first + kPositions < run.seen.end) queue_tile<kDim, true>(a, run, first + kPositions, room.keys);
    else commit_copies();
    finish_scores(a, rows, first, scores);
    INFER_UNROLL
    for (int i = 0; i < 2; ++i) {
      const float factor = weigh_row(scores, i, so_far[i]);
      INFER_UNROLL
      for (auto& tile : sums.of) {
        tile[2 * i] *= factor;
        tile[2 * i + 1] *= factor;
      }
    }
    wait_copies<1>();
    __syncthreads();  // the values have arrived
    add_values(scores, room.values, sums);
    __syncthreads();  // the values have been read
  }
  write_row(a, rows[0], 0, so_far[0], sums, out);
  write_row(a, rows[1], 1, so_far[1], sums, out);
}

// The first blocks take the last tokens, which see the most positions.
template <int kDim>
__global__ void __launch_bounds__(kThreads) tile_kernel(AttentionShape a, const float* q, float* out) {
  TileRoom<kDim>& room = shared_memory<TileRoom<kDim>>();
  const int tokens = kRows / a.group, begin = static_cast<int>(gridDim.x - 1 - blockIdx.x) * tokens;
  const int end = begin + tokens < a.count.rows() ? begin + tokens : a.count.rows();
  const CacheShape& s = a.cache;
  for (int token = begin, next; token < end; token = next) {
    const int sequence = s.sequences[token];
    for (next = token + 1; next < end && s.sequences[next] == sequence;) ++next;
    if (!in_long_run(a, token)) continue;
    const int length = s.lengths[sequence];
    const Range first = visible(a.params, s.positions[token], length);
    const Range last = visible(a.params, s.positions[next - 1], length);
    attend_run(a, {token, next, static_cast<int>(blockIdx.y), sequence, {first.begin, last.end}}, begin, q, room, out);
  }
}

}  // namespace

// BF16 values may exceed the range of fp16; F32 caches are used for their precision.
bool has_tiles(const OpDesc& op) {
  const CacheDesc& c = *op.cache;
  const auto fits = [](DataType type) {
    return type == DataType::kF16 || type == DataType::kQ8_0 || type == DataType::kQ4_0;
  };
  return op.op == Op::kPagedAttention && !c.latent && fits(c.key_type) && fits(c.value_type) &&
         std::max(c.key_dim, c.value_dim) <= kMostDim && op.inputs[0]->shape[1] / c.n_kv_head <= kRows;
}

void attend_in_tiles(const Launch& launch, CudaStream& stream, const AttentionShape& a) {
  const dim3 grid(blocks_for(rows_of(launch.inputs[0]), kRows / a.group), static_cast<unsigned>(a.cache.n_kv_head));
  const int dim = std::max(a.cache.key_dim, a.cache.value_dim);
  launch_kernel(stream, {grid, kThreads},
                dim <= 64    ? tile_kernel<64>
                : dim <= 128 ? tile_kernel<128>
                             : tile_kernel<256>,
                a, address<const float>(launch.inputs[0]), address<float>(launch.outputs[0]));
}

}  // namespace infer::cuda
