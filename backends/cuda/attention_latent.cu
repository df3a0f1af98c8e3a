// Attention of long runs of tokens to a latent cache on tensor cores. Keys are too long for one warp's registers, and
// so are the sums of their values: a block takes 16 rows of queries, which are in shared memory like the keys of 16
// positions. Its four warps divide the values of the keys among them, add their parts of the scores in the order of the
// warps, and each adds values of its own. The values are the beginning of the keys, so a row of the cache is read once.
// Several blocks on a multiprocessor hide each other's waits.
#include <algorithm>

#include "backends/cuda/attention_scores.cuh"
#include "backends/cuda/launch.h"

namespace infer::cuda {
namespace {

constexpr int kRows = 16, kPositions = 16;
constexpr int kWarps = 4, kThreads = kWarps * static_cast<int>(kWarp);
constexpr int kMostKey = 576, kMostValue = 512;
constexpr int kChunks = kMostKey / 8;               // of 8 values, in a row
constexpr int kLaneChunks = (kChunks + 31) / 32;    // of a row that a warp loads
constexpr int kPairs = kMostValue / (16 * kWarps);  // 16 values each, of a warp's sums
static_assert(kChunks % 8 == 0 && kMostValue % (16 * kWarps) == 0);

// 16 rows of fp16 values in chunks of 16 bytes, permuted as in attention_tiles.cu.
struct LatentTile {
  uint4 chunk[kRows * kChunks];
  __device__ uint4* at(int row, int i) { return chunk + row * kChunks + (i ^ (row & 7)); }
};
struct LatentRoom {
  LatentTile queries, keys;
  uint4 parts[kWarps][kPositions / 8][kWarp];  // of the scores: four floats of each lane
  float factor[kPositions];                    // of BF16 rows, see put_bf16_row()
};
using LatentScores = Scores<kPositions>;
struct LatentSums {
  float of[2 * kPairs][4];  // [16 rows][8 values] each
};

// Parts of 16 values that a row has, the last with zeros behind the row's end.
__device__ inline int parts_of(int dim) { return (dim + 15) / 16; }

__device__ inline void load_queries(const AttentionShape& a, const RunPart& run, const RowsOfBlock& block,
                                    const float* q, LatentTile& to) {
  const int dim = a.cache.key_dim, chunks = 2 * parts_of(dim);
  for (int i = static_cast<int>(threadIdx.x); i < kRows * chunks; i += kThreads) {
    const int row = i / chunks, chunk = i % chunks;
    const QueryRow from = query_row(a, run, block, row);
    const CacheRow values = {
        reinterpret_cast<const uint8_t*>(q + int64_t{from.token} * a.q_stride + int64_t{from.head} * dim),
        DataType::kF32};
    store_vector(to.at(row, chunk), to_halves(row_floats(values, dim, 8 * chunk, false)));
  }
}

// Queues the rows of the positions from `first` on. Positions that no token of the run sees become zeros.
__device__ inline void queue_rows(const AttentionShape& a, const RunPart& run, int first, LatentRoom& room) {
  const CacheShape& s = a.cache;
  const int dim = s.key_dim, chunks = 2 * parts_of(dim);
  const auto is_seen = [&](int position) { return position >= run.seen.begin && position < run.seen.end; };
  const auto row_at = [&](int position) -> const uint8_t* {
    uint8_t* const block = s.block_of(run.sequence, is_seen(position) ? position : run.seen.begin);
    return s.key(block, run.kv_head, position % kBlockTokens);
  };
  if (s.key_type == DataType::kBF16) {
    for (int row = static_cast<int>(threadIdx.x / kWarp); row < kPositions; row += kWarps) {
      const float factor = put_bf16_row<static_cast<int>(kWarp), kLaneChunks>(
          row_at(first + row), dim, a.vectors, is_seen(first + row), [&](int chunk, uint4 halves) {
            if (chunk < chunks) store_vector(room.keys.at(row, chunk), halves);
          });
      if (threadIdx.x % kWarp == 0) room.factor[row] = factor;
    }
    return;
  }
  for (int i = static_cast<int>(threadIdx.x); i < kPositions * chunks; i += kThreads) {
    const int row = i / chunks, chunk = i % chunks;
    const uint8_t* const from = row_at(first + row);
    uint4* const to = room.keys.at(row, chunk);
    const bool wanted = is_seen(first + row) && 8 * chunk < dim;
    if (s.key_type == DataType::kF16 && a.vectors) {
      copy_async(to, wanted ? from + 16 * chunk : from, wanted);
    } else {
      store_vector(
          to, wanted ? to_halves(row_floats({from, s.key_type}, dim, 8 * chunk, a.vectors)) : make_uint4(0, 0, 0, 0));
    }
  }
}

// The scores of all rows and positions, in every warp. Every thread of the block calls it.
__device__ inline void multiply_keys(const AttentionShape& a, LatentRoom& room, LatentScores& scores) {
  const int lane = static_cast<int>(threadIdx.x % kWarp), warp = static_cast<int>(threadIdx.x / kWarp);
  LatentScores part = {};
  for (int i = warp; i < parts_of(a.cache.key_dim); i += kWarps) {
    uint32_t x[4], b[4];
    load_matrices(x, room.queries.at(lane % 16, 2 * i + lane / 16));
    load_matrices(b, room.keys.at(lane % 8 + lane / 16 * 8, 2 * i + lane / 8 % 2));
    const uint32_t first[2] = {b[0], b[1]}, second[2] = {b[2], b[3]};
    multiply_add(part.of[0], x, first);
    multiply_add(part.of[1], x, second);
  }
  INFER_UNROLL
  for (int j = 0; j < kPositions / 8; ++j) {
    store_vector(&room.parts[warp][j][lane],
                 make_uint4(__float_as_uint(part.of[j][0]), __float_as_uint(part.of[j][1]),
                            __float_as_uint(part.of[j][2]), __float_as_uint(part.of[j][3])));
  }
  __syncthreads();
  INFER_UNROLL
  for (int j = 0; j < kPositions / 8; ++j) {
    INFER_UNROLL
    for (int w = 0; w < kWarps; ++w) {
      const uint4 v = load_vector(&room.parts[w][j][lane]);
      const uint32_t of[4] = {v.x, v.y, v.z, v.w};
      INFER_UNROLL
      for (int i = 0; i < 4; ++i) scores.of[j][i] = (w > 0 ? scores.of[j][i] : 0.0f) + __uint_as_float(of[i]);
    }
  }
}

// The 16 values of a warp's pair of sums.
__device__ inline int first_value(int pair) { return 16 * (pair * kWarps + static_cast<int>(threadIdx.x / kWarp)); }

__device__ inline void add_values(const AttentionShape& a, const LatentScores& scores, LatentRoom& room,
                                  LatentSums& sums) {
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  uint32_t weights[4];
  weights_of(scores, 0, weights);
  INFER_UNROLL
  for (int pair = 0; pair < kPairs; ++pair) {
    const int d = first_value(pair);
    if (d >= a.cache.value_dim) continue;
    uint32_t b[4];
    load_transposed(b, room.keys.at(lane % 16, d / 8 + lane / 16));
    const uint32_t first[2] = {b[0], b[1]}, second[2] = {b[2], b[3]};
    multiply_add(sums.of[2 * pair], weights, first);
    multiply_add(sums.of[2 * pair + 1], weights, second);
  }
}

__device__ inline void write_row(const AttentionShape& a, const QueryRow& row, int which, const Partial& all,
                                 const LatentSums& sums, float* out) {
  const float factor = finish_row(a, row, all);
  if (row.seen.begin >= row.seen.end) return;
  float* const to = out + (int64_t{row.token} * a.n_head + row.head) * a.cache.value_dim;
  const int t = static_cast<int>(threadIdx.x % 4);
  INFER_UNROLL
  for (int j = 0; j < 2 * kPairs; ++j) {
    INFER_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int d = first_value(j / 2) + 8 * (j % 2) + 2 * t + i;
      if (d < a.cache.value_dim) to[d] = sums.of[j][2 * which + i] * factor;
    }
  }
}

__device__ inline void attend_run(const AttentionShape& a, const RunPart& run, const RowsOfBlock& block, const float* q,
                                  LatentRoom& room, float* out) {
  const int row = static_cast<int>(threadIdx.x % kWarp / 4);
  const QueryRow rows[2] = {query_row(a, run, block, row), query_row(a, run, block, row + 8)};
  load_queries(a, run, block, q, room.queries);
  Partial so_far[2] = {{-INFINITY, 0}, {-INFINITY, 0}};
  LatentSums sums = {};
  for (int first = run.seen.begin / kPositions * kPositions; first < run.seen.end; first += kPositions) {
    queue_rows(a, run, first, room);
    commit_copies();
    wait_copies<0>();
    __syncthreads();  // the rows are there
    LatentScores scores;
    multiply_keys(a, room, scores);
    const bool scaled = a.cache.key_type == DataType::kBF16;
    const auto times_factor = [&](float x, int, int position) { return x * room.factor[position]; };
    if (scaled) change_scores(0, scores, times_factor);
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
    if (scaled) change_scores(0, scores, times_factor);
    add_values(a, scores, room, sums);
    __syncthreads();  // the rows have been read
  }
  write_row(a, rows[0], 0, so_far[0], sums, out);
  write_row(a, rows[1], 1, so_far[1], sums, out);
}

// Blocks share the heads of a group of more than 16.
struct GroupShape {
  int heads, parts;  // rows of a token in a block, blocks for all of them
};

// Tokens in blocks from the last on: these see the most positions.
__global__ void __launch_bounds__(kThreads) latent_kernel(AttentionShape a, GroupShape g, const float* q, float* out) {
  LatentRoom& room = shared_memory<LatentRoom>();
  const int tokens = kRows / g.heads, begin = static_cast<int>(gridDim.x - 1 - blockIdx.x) * tokens;
  const int part = static_cast<int>(blockIdx.y) % g.parts;
  for_each_run(a, begin, tokens, static_cast<int>(blockIdx.y) / g.parts, [&](const RunPart& run) {
    attend_run(a, run, {begin, part * g.heads, g.heads, kRows}, q, room, out);
  });
}

}  // namespace

bool has_latent_tiles(const CacheDesc& cache) { return cache.key_dim <= kMostKey && cache.value_dim <= kMostValue; }

void attend_latent(const Launch& launch, CudaStream& stream, const AttentionShape& a) {
  const int heads = std::min(a.group, kRows), parts = (a.group + heads - 1) / heads;
  const dim3 grid(blocks_for(rows_of(launch.inputs[0]), kRows / heads),
                  static_cast<unsigned>(a.cache.n_kv_head * parts));
  launch_kernel(stream, {grid, kThreads}, latent_kernel, a, GroupShape{heads, parts},
                address<const float>(launch.inputs[0]), address<float>(launch.outputs[0]));
}

}  // namespace infer::cuda
