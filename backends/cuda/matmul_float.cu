// Matmuls with float weights, for few rows: the weights of a row in vectors of 16 bytes, products in F32.
#include "backends/cuda/cache.cuh"
#include "backends/cuda/formats.cuh"
#include "backends/cuda/matmul_rows.cuh"

namespace infer::cuda {
namespace {

constexpr int kVector = 8;  // values that a lane takes at a time

// Activations: vector v is at x + v / per_row * stride + v % per_row * k.
struct FloatInput {
  const float* x;
  int64_t stride, per_row;
  __device__ const float* vector(int64_t v, int64_t k) const { return x + v / per_row * stride + v % per_row * k; }
};

template <int kTile>
struct Inputs {
  const float* of[kTile];
};

template <typename W, int kTile, int kRows>
__device__ __forceinline__ void add_vector(const uint8_t* const (&rows)[kRows], int unit, const Inputs<kTile>& x,
                                           RowSums<kTile, kRows>& sums) {
  Floats8 w[kRows];
  INFER_UNROLL
  for (int r = 0; r < kRows; ++r) W::load8(rows[r], int64_t{unit} * kVector, w[r].at);
  INFER_UNROLL
  for (int t = 0; t < kTile; ++t) {
    const Floats8 of_x = load_floats(x.of[t] + int64_t{unit} * kVector);
    INFER_UNROLL
    for (int r = 0; r < kRows; ++r) {
      INFER_UNROLL
      for (int i = 0; i < kVector; ++i) sums.of[t][r] = fmaf(w[r].at[i], of_x.at[i], sums.of[t][r]);
    }
  }
}
template <typename W, int kTile, int kRows>
__device__ __forceinline__ void add_value(const uint8_t* const (&rows)[kRows], int i, const Inputs<kTile>& x,
                                          RowSums<kTile, kRows>& sums) {
  INFER_UNROLL
  for (int r = 0; r < kRows; ++r) {
    const float w = W::load(rows[r], i);
    INFER_UNROLL
    for (int t = 0; t < kTile; ++t) sums.of[t][r] = fmaf(w, x.of[t][i], sums.of[t][r]);
  }
}

// kVectors: rows of weights and activations are vectors of 16 bytes.
template <typename W, int kTile, int kRows, bool kVectors>
__global__ void __launch_bounds__(kRowWarps* kWarp)
    float_product_kernel(ProductShape s, const uint8_t* weights, FloatInput input, const float* bias, float* out) {
  const WarpPlace p = warp_place<kTile, kRows>(s);
  if (p.valid == 0) return;
  const VectorPlace place = place_of(s, p.first);
  const uint8_t* rows[kRows];
  Inputs<kTile> x;
  INFER_UNROLL
  for (int r = 0; r < kRows; ++r) rows[r] = weight_row(s, weights, place.expert, p.row + r);
  INFER_UNROLL
  for (int t = 0; t < kTile; ++t) x.of[t] = input.vector(place.input + (t < p.valid ? t : 0), s.k);
  RowSums<kTile, kRows> sums = {};
  int unit = p.begin;
  if (kVectors) {
    const int units = static_cast<int>(s.k / kVector);
    if (kTile * kRows <= 2) {
      for (; unit + 3 * p.stride < units; unit += 4 * p.stride) {
        INFER_UNROLL
        for (int i = 0; i < 4; ++i) add_vector<W>(rows, unit + i * p.stride, x, sums);
      }
    }
    for (; unit < units; unit += p.stride) add_vector<W>(rows, unit, x, sums);
  } else {
    for (; unit < s.k; unit += p.stride) add_value<W>(rows, unit, x, sums);
  }
  store_rows(s, p, sums, bias, place.expert, out);
}

bool in_vectors(const Product& p, const FloatInput& input) {
  const auto address = reinterpret_cast<uintptr_t>(input.x);
  return p.shape.k % kVector == 0 && p.shape.row_bytes % 16 == 0 && input.stride % 4 == 0 && address % 16 == 0;
}

}  // namespace

void multiply_floats(CudaStream& stream, Product p) {
  const FloatInput input = {address<const float>(p.x), p.x.desc->row_stride, p.per_row};
  const bool vectors = in_vectors(p, input);
  p.shape.sharing = warps_for_row(p.shape.n, vectors ? p.shape.k / kVector : p.shape.k, stream.context().properties);
  with_tile(p.shape.experts ? 1 : p.vectors, [&](auto tile, auto rows) {
    constexpr int kTile = decltype(tile)::value, kRows = decltype(rows)::value;
    with_float_format(p.weight.desc->type, [&](auto w) {
      using W = decltype(w);
      const LaunchShape grid = rows_launch(p, kTile, kRows);
      launch_kernel(
          stream, grid,
          vectors ? float_product_kernel<W, kTile, kRows, true> : float_product_kernel<W, kTile, kRows, false>, p.shape,
          address<const uint8_t>(p.weight), input, address<const float>(p.bias), address<float>(p.out));
    });
  });
}

}  // namespace infer::cuda
