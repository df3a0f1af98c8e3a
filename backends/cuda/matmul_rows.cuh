// Matmuls that process the weights row by row: shared by the kernels for quantized and for float weights. A warp
// computes the products of kRows rows of weights with kTile vectors of activations; for narrow matrices several warps
// share them. The sums of a vector are the same with any kTile and kRows, so they do not depend on the rest of the
// batch.
#pragma once

#include <algorithm>
#include <type_traits>

#include "backends/cuda/cuda_ops.h"
#include "backends/cuda/launch.h"

namespace infer::cuda {

constexpr unsigned kRowWarps = 4;  // of a block
constexpr int kMostTile = 8;       // vectors that share the unpacking of a row of weights

struct ProductShape {
  int64_t n, k, row_bytes;
  RowCount count;  // of vectors: of tokens times experts for each token, if there are several
  int per_count;   // vectors for each counted row
  // For experts, otherwise null or 0:
  const int32_t* ids;  // of each vector; null: vector i is for expert i % per_count
  bool experts;
  bool shared_input;  // all vectors of a token have the same activations
  int sharing;        // warps that share a row: 1, 2 or 4
  // Tiles of vectors that are next to each other in the grid: their blocks run at about the same time, so all but the
  // first find the weights in the L2 cache.
  int neighbours;
};

// Which weights and activations vector v takes.
struct VectorPlace {
  int64_t input;  // row of activations
  int64_t expert;
};
__device__ inline VectorPlace place_of(const ProductShape& s, int64_t v) {
  if (!s.experts) return {v, 0};
  return {s.shared_input ? v / s.per_count : v, s.ids ? s.ids[v] : v % s.per_count};
}

// The rows and vectors of a warp, and which part of their values it takes.
struct WarpPlace {
  int64_t row, first;  // the first ones
  int valid;           // vectors; 0: the block has nothing to do
  int begin, stride;   // of the units, for this lane
};
template <int kTile, int kRows>
__device__ inline WarpPlace warp_place(const ProductShape& s) {
  const int warp = static_cast<int>(threadIdx.x / kWarp), lane = static_cast<int>(threadIdx.x % kWarp);
  const int groups = static_cast<int>(kRowWarps) / s.sharing;
  const int64_t row_block = blockIdx.x / static_cast<unsigned>(s.neighbours);
  const int64_t first =
      (static_cast<int64_t>(blockIdx.y) * s.neighbours + blockIdx.x % static_cast<unsigned>(s.neighbours)) * kTile;
  const int64_t left = int64_t{s.count.rows()} * s.per_count - first;
  return {(row_block * groups + warp / s.sharing) * kRows, first,
          static_cast<int>(left < kTile ? left < 0 ? 0 : left : kTile),
          warp % s.sharing * static_cast<int>(kWarp) + lane, s.sharing * static_cast<int>(kWarp)};
}

// The address of row `row`; rows past the end repeat the last one.
__device__ inline const uint8_t* weight_row(const ProductShape& s, const uint8_t* weights, int64_t expert,
                                            int64_t row) {
  return weights + (expert * s.n + (row < s.n ? row : s.n - 1)) * s.row_bytes;
}

template <int kTile, int kRows>
struct RowSums {
  float of[kTile][kRows];
};

// Adds the sums of the warps that share rows, in their order, into the first of them. Every thread must call it.
template <int kTile, int kRows>
__device__ void add_warps(const ProductShape& s, RowSums<kTile, kRows>& sums) {
  struct Parts {
    RowSums<kTile, kRows> of[kRowWarps];
  };
  if (s.sharing == 1) return;
  Parts& parts = shared_memory<Parts>();
  const int warp = static_cast<int>(threadIdx.x / kWarp), first = warp / s.sharing * s.sharing;
  if (threadIdx.x % kWarp == 0) parts.of[warp] = sums;
  __syncthreads();
  sums = parts.of[first];
  for (int other = first + 1; other < first + s.sharing; ++other) {
    INFER_UNROLL
    for (int t = 0; t < kTile; ++t) {
      INFER_UNROLL
      for (int r = 0; r < kRows; ++r) sums.of[t][r] += parts.of[other].of[t][r];
    }
  }
}

// Adds the sums of the lanes and writes the results. Every thread of the block must call it.
template <int kTile, int kRows>
__device__ void store_rows(const ProductShape& s, const WarpPlace& p, RowSums<kTile, kRows>& sums, const float* bias,
                           int64_t expert, float* out) {
  INFER_UNROLL
  for (int t = 0; t < kTile; ++t) {
    INFER_UNROLL
    for (int r = 0; r < kRows; ++r) sums.of[t][r] = warp_sum(sums.of[t][r]);
  }
  add_warps(s, sums);
  if (threadIdx.x % kWarp != 0 || p.begin >= static_cast<int>(kWarp)) return;
  INFER_UNROLL
  for (int t = 0; t < kTile; ++t) {
    INFER_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const int64_t row = p.row + r;
      if (t >= p.valid || row >= s.n) continue;
      const float sum = sums.of[t][r];
      out[(p.first + t) * s.n + row] = bias ? sum + bias[expert * s.n + row] : sum;
    }
  }
}

// ---- Launches ----

// One matrix for all vectors, or one for each.
struct Product {
  ProductShape shape;
  TensorRef x, weight, bias, out;
  int64_t vectors;  // capacity
  int64_t per_row;  // vectors of activations in each row of x
};

// The number of warps that share a row of `units` units: more for a narrow matrix, to give every multiprocessor work.
inline int warps_for_row(int64_t n, int64_t units, const cudaDeviceProp& properties) {
  constexpr int64_t kWanted = 16;  // warps on a multiprocessor
  int64_t sharing = 1;
  while (sharing < kRowWarps && n * sharing < kWanted * properties.multiProcessorCount && units > kWarp * sharing) {
    sharing *= 2;
  }
  return static_cast<int>(sharing);
}

// Calls f(integral constant, integral constant) with the vectors and rows of a warp. With several vectors, two rows
// share each load of activations, of which there are more bytes than of weights.
template <typename F>
void with_tile(int64_t vectors, F f) {
  const auto call = [&](auto tile) { f(tile, std::integral_constant < int, decltype(tile)::value >= 4 ? 2 : 1 > ()); };
  if (vectors <= 1) call(std::integral_constant<int, 1>());
  else if (vectors <= 2) call(std::integral_constant<int, 2>());
  else if (vectors <= 4) call(std::integral_constant<int, 4>());
  else call(std::integral_constant<int, kMostTile>());
}

constexpr int64_t kMostNeighbours = 8;
// Sets the shape's neighbours too.
inline LaunchShape rows_launch(Product& p, int tile, int rows) {
  const int per_block = static_cast<int>(kRowWarps) / p.shape.sharing * rows;
  const int64_t tiles = blocks_for(p.vectors, tile);
  p.shape.neighbours = static_cast<int>(std::clamp(tiles, int64_t{1}, kMostNeighbours));
  return {dim3(blocks_for(p.shape.n, per_block) * static_cast<unsigned>(p.shape.neighbours),
               blocks_for(tiles, p.shape.neighbours)),
          kRowWarps * kWarp};
}

// The matmul with float weights. REQUIRES a float type.
void multiply_floats(CudaStream& stream, Product p);

}  // namespace infer::cuda
