// Attention of long runs of tokens on tensor cores. A block takes 64 rows: tokens of a run times the query heads that
// share a KV head; a warp takes 16 of them. Tiles of keys and values pass through shared memory as fp16: the values of
// a tile are loaded while its scores are computed, the keys of the next tile while the values are summed. The softmax
// is adjusted after each tile (https://arxiv.org/abs/2307.08691). Its weights stay in registers between the
// accumulators of one matmul and the operand of the next.
#include <algorithm>

#include "backends/cuda/attention_scores.cuh"
#include "backends/cuda/launch.h"

namespace infer::cuda {
namespace {

constexpr int kRows = 64;  // of queries, in a block
constexpr int kThreads = 128;
constexpr int kMostDim = 256;

// Rows of kDim fp16 values in chunks of 16 bytes, permuted within each row so that 8 consecutive rows use different
// banks.
template <int kDim>
struct RowTile {
  static constexpr int kPositions = kDim > 128 ? 32 : 64, kChunks = kDim / 8;
  uint4 chunk[kPositions * kChunks];
  float factor[kPositions];  // of BF16 rows, see put_bf16_row()
  __device__ uint4* at(int row, int i) { return chunk + row * kChunks + (i ^ (row & 7)); }
};
// A warp's 16 rows of queries as the left operand of products, 16 values to a part: in registers, of which long rows
// have too few, so that their last parts are in shared memory. Rows there are an odd number of chunks apart, so that 8
// consecutive ones use different banks.
template <int kDim>
struct QueryHalves {
  static constexpr int kSharedParts = kDim > 128 ? 7 : 0, kParts = kDim / 16 - kSharedParts;
  uint32_t of[kParts][4];
};
template <int kDim>
struct QueryTile {
  static constexpr int kStride = 2 * QueryHalves<kDim>::kSharedParts + 1;
  uint4 chunk[kRows * kStride];
  __device__ uint4* at(int row, int i) { return chunk + row * kStride + i; }
};
template <int kDim>
struct TileRoom {
  RowTile<kDim> keys, values;
  QueryTile<kDim> queries;
};
template <int kDim>
using TileScores = Scores<RowTile<kDim>::kPositions>;

// The first of the lane's two rows; the other one is 8 rows behind.
__device__ inline int lane_row() { return static_cast<int>(threadIdx.x / kWarp * 16 + threadIdx.x % kWarp / 4); }

template <int kDim>
__device__ inline void load_queries(const AttentionShape& a, const QueryRow (&rows)[2], const float* q,
                                    QueryHalves<kDim>& to, QueryTile<kDim>& rest) {
  const int t = static_cast<int>(threadIdx.x % 4), dim = a.cache.key_dim;
  INFER_UNROLL
  for (int part = 0; part < kDim / 16; ++part) {
    INFER_UNROLL
    for (int i = 0; i < 4; ++i) {
      const QueryRow& row = rows[i % 2];
      const int d = 16 * part + 8 * (i / 2) + 2 * t;
      const float* const from = q + int64_t{row.token} * a.q_stride + row.head * dim + d;
      const uint32_t halves = pack_halves(d < dim ? from[0] : 0.0f, d + 1 < dim ? from[1] : 0.0f);
      const int shared_part = part - QueryHalves<kDim>::kParts;
      if (shared_part < 0) to.of[part][i] = halves;
      else reinterpret_cast<uint32_t*>(rest.at(lane_row() + 8 * (i % 2), 2 * shared_part + i / 2))[t] = halves;
    }
  }
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
  const auto is_seen = [&](int position) { return position >= run.seen.begin && position < run.seen.end; };
  const auto row_at = [&](int position) -> const uint8_t* {
    uint8_t* const block = s.block_of(run.sequence, is_seen(position) ? position : run.seen.begin);
    const int slot = position % kBlockTokens;
    return kKeys ? s.key(block, run.kv_head, slot) : s.value(block, run.kv_head, slot);
  };
  // Calls f(target, row of the cache, chunk, whether it is to be loaded) for the thread's chunks.
  const auto each = [&](auto f) {
    for (int i = static_cast<int>(threadIdx.x); i < Tile::kPositions * Tile::kChunks; i += kThreads) {
      const int row = i / Tile::kChunks, chunk = i % Tile::kChunks, position = first + row;
      f(tile.at(row, chunk), row_at(position), chunk, is_seen(position) && 8 * chunk < dim);
    }
  };
  if (type == DataType::kF16 && a.vectors) {
    each([&](uint4* to, const uint8_t* row, int chunk, bool wanted) {
      copy_async(to, wanted ? row + 16 * chunk : row, wanted);
    });
  } else if (type == DataType::kBF16) {
    constexpr int kAtOnce = kThreads / Tile::kChunks;
    for (int row = static_cast<int>(threadIdx.x) / Tile::kChunks; row < Tile::kPositions; row += kAtOnce) {
      const float factor =
          put_bf16_row<Tile::kChunks, 1>(row_at(first + row), dim, a.vectors, is_seen(first + row),
                                         [&](int chunk, uint4 halves) { store_vector(tile.at(row, chunk), halves); });
      if (threadIdx.x % Tile::kChunks == 0) tile.factor[row] = factor;
    }
  } else {
    each([&](uint4* to, const uint8_t* row, int chunk, bool wanted) {
      store_vector(to, wanted ? to_halves(row_floats({row, type}, dim, 8 * chunk, a.vectors)) : make_uint4(0, 0, 0, 0));
    });
  }
  commit_copies();
}

// Multiplies scores or weights by the factors that BF16 rows were divided by.
template <int kDim>
__device__ inline void multiply_by_factors(DataType type, const RowTile<kDim>& tile, TileScores<kDim>& scores) {
  if (type != DataType::kBF16) return;
  change_scores(0, scores, [&](float score, int, int row) { return score * tile.factor[row]; });
}

template <int kDim>
__device__ __forceinline__ void multiply_keys(const QueryHalves<kDim>& q, QueryTile<kDim>& rest, RowTile<kDim>& keys,
                                              TileScores<kDim>& scores) {
  // The lane supplies the address of a row of the matrices (first, left), (first, right), (second, left), (second,
  // right) of two times 8 positions by 16 values.
  const int lane = static_cast<int>(threadIdx.x % kWarp), row = lane % 8 + lane / 16 * 8, right = lane / 8 % 2;
  INFER_UNROLL
  for (int part = 0; part < kDim / 16; ++part) {
    const int shared_part = part - QueryHalves<kDim>::kParts;
    uint32_t a[4];
    if (shared_part < 0) {
      INFER_UNROLL
      for (int i = 0; i < 4; ++i) a[i] = q.of[part][i];
    } else {
      load_matrices(a, rest.at(static_cast<int>(threadIdx.x / kWarp) * 16 + lane % 16, 2 * shared_part + lane / 16));
    }
    INFER_UNROLL
    for (int j = 0; j < RowTile<kDim>::kPositions / 8; j += 2) {
      uint32_t b[4];
      load_matrices(b, keys.at(8 * j + row, 2 * part + right));
      const uint32_t first[2] = {b[0], b[1]}, second[2] = {b[2], b[3]};
      multiply_add(scores.of[j], a, first);
      multiply_add(scores.of[j + 1], a, second);
    }
  }
}

template <int kDim>
struct ValueSums {
  float of[kDim / 8][4];  // [16 rows][8 values] each
};

template <int kDim>
__device__ __forceinline__ void add_values(const TileScores<kDim>& weights, RowTile<kDim>& values,
                                           ValueSums<kDim>& sums) {
  // Matrices of positions by values: (first, left), (second, left), (first, right), (second, right), transposed.
  const int lane = static_cast<int>(threadIdx.x % kWarp), row = lane % 16, right = lane / 16;
  INFER_UNROLL
  for (int part = 0; part < RowTile<kDim>::kPositions / 16; ++part) {
    uint32_t a[4];
    weights_of(weights, part, a);
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
  const float factor = finish_row(a, row, all);
  if (row.seen.begin >= row.seen.end) return;
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
  const int row = lane_row();
  const RowsOfBlock block = {first_token, 0, a.group, kRows};
  const QueryRow rows[2] = {query_row(a, run, block, row), query_row(a, run, block, row + 8)};
  const int begin = run.seen.begin / kPositions * kPositions;
  queue_tile<kDim, true>(a, run, begin, room.keys);
  QueryHalves<kDim> queries;
  load_queries(a, rows, q, queries, room.queries);
  Partial so_far[2] = {{-INFINITY, 0}, {-INFINITY, 0}};
  ValueSums<kDim> sums = {};
  for (int first = begin; first < run.seen.end; first += kPositions) {
    queue_tile<kDim, false>(a, run, first, room.values);
    wait_copies<1>();
    __syncthreads();  // the keys have arrived
    TileScores<kDim> scores = {};
    multiply_keys(queries, room.queries, room.keys, scores);
    multiply_by_factors(a.cache.key_type, room.keys, scores);
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
    multiply_by_factors(a.cache.value_type, room.values, scores);
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
  for_each_run(a, begin, tokens, static_cast<int>(blockIdx.y),
               [&](const RunPart& run) { attend_run(a, run, begin, q, room, out); });
}

}  // namespace

// F32 caches are used for their precision.
bool has_tiles(const OpDesc& op) {
  const CacheDesc& c = *op.cache;
  const auto fits = [](DataType type) { return type != DataType::kF32; };
  if (op.op != Op::kPagedAttention || !fits(c.key_type)) return false;
  if (c.latent) return has_latent_tiles(c);
  return fits(c.value_type) && std::max(c.key_dim, c.value_dim) <= kMostDim &&
         op.inputs[0]->shape[1] / c.n_kv_head <= kRows;
}

void attend_in_tiles(const Launch& launch, CudaStream& stream, const AttentionShape& a) {
  if (a.cache.latent) return attend_latent(launch, stream, a);
  const dim3 grid(blocks_for(rows_of(launch.inputs[0]), kRows / a.group), static_cast<unsigned>(a.cache.n_kv_head));
  const int dim = std::max(a.cache.key_dim, a.cache.value_dim);
  launch_kernel(stream, {grid, kThreads},
                dim <= 64    ? tile_kernel<64>
                : dim <= 128 ? tile_kernel<128>
                             : tile_kernel<256>,
                a, address<const float>(launch.inputs[0]), address<float>(launch.outputs[0]));
}

}  // namespace infer::cuda
