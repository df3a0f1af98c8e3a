// matmul and matmul_experts, but for those of matmul_tiled.cu. Activations for quantized weights are quantized to int8
// with a scale for each 32 values; a warp computes the products of one row of the weights with up to kMostTile rows of
// activations.
#include <algorithm>

#include "backends/cuda/cuda_ops.h"
#include "backends/cuda/formats.cuh"
#include "backends/cuda/launch.h"
#include "backends/cuda/matmul_tiled.h"

namespace infer::cuda {
namespace {

constexpr unsigned kWarps = 4;  // of a block: so many rows of weights
constexpr int kMostTile = 8;    // rows of activations that share the unpacking of a row of weights
constexpr int kPerScale = 32;   // activations
constexpr int kGroup = 16;      // values that are unpacked at a time
constexpr uint32_t kOnes = 0x01010101u;

// ---- Activations ----

// Rows of k values: int8 codes [rows, k], then scales [rows, k / 32].
struct Quantized {
  int8_t* codes;
  float* scales;
};

struct ActivationShape {
  RowCount count;
  int64_t k, per_row;  // vectors of k values in each row of x
  int64_t x_stride;
};

// A warp per 32 values, of which the largest in magnitude becomes 127. A block with a NaN gets a scale of NaN.
__global__ void quantize_kernel(ActivationShape shape, const float* x, Quantized out) {
  const int64_t blocks = shape.k / kPerScale, of_row = blocks * shape.per_row;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  const int64_t row = i / of_row;
  if (row >= shape.count.rows()) return;
  const int64_t lane = threadIdx.x % kWarp, at = i % of_row * kPerScale + lane;
  const float value = x[row * shape.x_stride + at];
  const bool nan = __any_sync(kAllLanes, value != value);
  const float largest = warp_max(fabsf(value)), inverse = 127.0f / largest;
  const bool usable = largest > 0 && inverse <= 3.4028235e38f;
  out.codes[i * kPerScale + lane] = static_cast<int8_t>(usable && !nan ? __float2int_rn(value * inverse) : 0);
  if (lane == 0) out.scales[i] = nan ? NAN : usable ? largest / 127.0f : 0.0f;
}

// ---- Products ----

struct ProductShape {
  int64_t n, k, row_bytes;
  RowCount count;  // of vectors: of tokens times experts for each token, if there are several
  int per_count;   // vectors for each counted row
  // Of experts, else null or 0:
  const int32_t* ids;  // of each vector; null: vector i is for expert i % per_count
  bool experts;
  bool shared_input;  // all vectors of a token have the same activations
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

// Writes the sums of a warp's lanes for vectors first .. first + valid.
template <int kTile>
__device__ void store_sums(const ProductShape& s, int64_t row, int64_t first, int valid, const float (&sums)[kTile],
                           const float* bias, int64_t expert, float* out) {
  for (int t = 0; t < kTile; ++t) {
    const float sum = warp_sum(sums[t]);
    if (threadIdx.x % kWarp == 0 && t < valid) {
      out[(first + t) * s.n + row] = bias ? sum + bias[expert * s.n + row] : sum;
    }
  }
}

template <typename W, int kTile>
__global__ void product_kernel(ProductShape s, const uint8_t* weights, Quantized x, const float* bias, float* out) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  const int64_t first = static_cast<int64_t>(blockIdx.y) * kTile, vectors = int64_t{s.count.rows()} * s.per_count;
  if (row >= s.n || first >= vectors) return;
  const int valid = static_cast<int>(vectors - first < kTile ? vectors - first : kTile);
  const VectorPlace place = place_of(s, first);
  const auto* blocks = reinterpret_cast<const typename W::Block*>(weights + (place.expert * s.n + row) * s.row_bytes);
  constexpr int kGroups = W::kValues / kGroup;  // of a block
  float sums[kTile] = {};
  for (int64_t g = threadIdx.x % kWarp; g < s.k / kGroup; g += kWarp) {
    const Codes c = W::load(blocks[g / kGroups], static_cast<int>(g % kGroups));
    for (int t = 0; t < kTile; ++t) {
      const int64_t input = place.input + (t < valid ? t : 0);
      const auto* codes = reinterpret_cast<const int*>(x.codes + input * s.k + g * kGroup);
      const float scale = x.scales[(input * s.k + g * kGroup) / kPerScale];
      int dot = 0, total = 0;
      for (int j = 0; j < 4; ++j) {
        dot = __dp4a(codes[j], static_cast<int>(c.word[j]), dot);
        if (W::kOffset) total = __dp4a(codes[j], static_cast<int>(kOnes), total);
      }
      float value = c.scale * static_cast<float>(dot);
      if (W::kOffset) value = fmaf(c.offset, static_cast<float>(total), value);
      sums[t] = fmaf(value, scale, sums[t]);
    }
  }
  store_sums(s, row, first, valid, sums, bias, place.expert, out);
}

template <typename W, int kTile>
__global__ void float_product_kernel(ProductShape s, const uint8_t* weights, const float* x, int64_t x_stride,
                                     int64_t per_row, const float* bias, float* out) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  const int64_t first = static_cast<int64_t>(blockIdx.y) * kTile, vectors = int64_t{s.count.rows()} * s.per_count;
  if (row >= s.n || first >= vectors) return;
  const int valid = static_cast<int>(vectors - first < kTile ? vectors - first : kTile);
  const VectorPlace place = place_of(s, first);
  const uint8_t* const w = weights + (place.expert * s.n + row) * s.row_bytes;
  float sums[kTile] = {};
  for (int64_t i = threadIdx.x % kWarp; i < s.k; i += kWarp) {
    const float weight = W::load(w, i);
    for (int t = 0; t < kTile; ++t) {
      const int64_t input = place.input + (t < valid ? t : 0);
      sums[t] = fmaf(weight, x[input / per_row * x_stride + input % per_row * s.k + i], sums[t]);
    }
  }
  store_sums(s, row, first, valid, sums, bias, place.expert, out);
}

// ---- Launches ----

// One matrix for all vectors, or one for each.
struct Product {
  ProductShape shape;
  TensorRef x, weight, bias, out;
  int64_t vectors;  // capacity
  int64_t per_row;  // vectors of activations in each row of x
};

size_t codes_bytes(const TensorDesc& x) { return (static_cast<size_t>(x.shape.elements()) + 63) / 64 * 64; }

// Calls f(integral constant) with the tile for so many vectors: the same sums for each vector with any of them.
template <typename F>
void with_tile(int64_t vectors, F f) {
  if (vectors <= 1) f(std::integral_constant<int, 1>());
  else if (vectors <= 2) f(std::integral_constant<int, 2>());
  else if (vectors <= 4) f(std::integral_constant<int, 4>());
  else f(std::integral_constant<int, kMostTile>());
}

Quantized quantize(const Launch& launch, CudaStream& stream, const Product& p) {
  const TensorDesc& x = *p.x.desc;
  std::byte* const scratch = scratch_address(launch);
  const Quantized made = {reinterpret_cast<int8_t*>(scratch), reinterpret_cast<float*>(scratch + codes_bytes(x))};
  const ActivationShape shape = {row_count(launch, x), p.shape.k, p.per_row, x.row_stride};
  launch_kernel(stream, {dim3(blocks_for(x.shape.elements() / kPerScale, kWarps)), kWarps * kWarp}, quantize_kernel,
                shape, address<const float>(p.x), made);
  return made;
}

void multiply(const Launch& launch, Stream& s, const Product& p) {
  CudaStream& stream = cuda_stream(s);
  const auto* weights = address<const uint8_t>(p.weight);
  const auto* bias = address<const float>(p.bias);
  auto* out = address<float>(p.out);
  const DataType type = p.weight.desc->type;
  // Vectors of experts do not share a matrix.
  with_tile(p.shape.experts ? 1 : p.vectors, [&](auto tile) {
    constexpr int kTile = decltype(tile)::value;
    const dim3 grid(blocks_for(p.shape.n, kWarps), blocks_for(p.vectors, kTile));
    const bool floats = with_float_format(type, [&](auto w) {
      launch_kernel(stream, {grid, kWarps * kWarp}, float_product_kernel<decltype(w), kTile>, p.shape, weights,
                    address<const float>(p.x), p.x.desc->row_stride, p.per_row, bias, out);
    });
    if (floats) return;
    const Quantized x = quantize(launch, stream, p);
    with_quantized_format(type, [&](auto w) {
      launch_kernel(stream, {grid, kWarps * kWarp}, product_kernel<decltype(w), kTile>, p.shape, weights, x, bias, out);
    });
  });
}

bool supports_matmul(const OpDesc& op, const Device&) {
  const TensorDesc& weight = *op.inputs[1];
  return is_weight_type(weight.type) && weight.shape.last() % traits(weight.type).block_size == 0;
}

std::unique_ptr<Prepared> prepare_matmul(const OpDesc& op, Device& device) {
  auto prepared = std::make_unique<Prepared>();
  const TensorDesc& x = *op.inputs[0];
  if (is_tiled(op, static_cast<CudaDevice&>(device).context())) {
    prepared->scratch_bytes = tiled_scratch_bytes(x);
  } else if (traits(op.inputs[1]->type).quantized) {
    prepared->scratch_bytes = codes_bytes(x) + static_cast<size_t>(x.shape.elements()) / kPerScale * sizeof(float);
  }
  return prepared;
}

void matmul(const Prepared&, const Launch& launch, Stream& stream) {
  if (is_tiled(launch.op, cuda_stream(stream).context())) return multiply_tiled(launch, cuda_stream(stream));
  const TensorRef &x = launch.inputs[0], &weight = launch.inputs[1], &bias = launch.inputs[2], &out = launch.outputs[0];
  const int64_t k = weight.desc->shape[1];
  const ProductShape shape = {.n = weight.desc->shape[0],
                              .k = k,
                              .row_bytes = static_cast<int64_t>(row_bytes(weight.desc->type, k)),
                              .count = row_count(launch, *x.desc),
                              .per_count = 1,
                              .ids = nullptr,
                              .experts = false,
                              .shared_input = false};
  multiply(launch, stream, {shape, x, weight, bias, out, rows_of(x), 1});
}

void matmul_experts(const Prepared&, const Launch& launch, Stream& stream) {
  const TensorRef &x = launch.inputs[0], &weight = launch.inputs[1], &ids = launch.inputs[2], &bias = launch.inputs[3],
                  &out = launch.outputs[0];
  const int64_t k = weight.desc->shape[2], used = out.desc->shape[1];
  const bool shared = x.desc->shape.rank == 2;
  const ProductShape shape = {.n = weight.desc->shape[1],
                              .k = k,
                              .row_bytes = static_cast<int64_t>(row_bytes(weight.desc->type, k)),
                              .count = row_count(launch, *x.desc),
                              .per_count = static_cast<int>(used),
                              .ids = address<const int32_t>(ids),
                              .experts = true,
                              .shared_input = shared};
  multiply(launch, stream, {shape, x, weight, bias, out, rows_of(x) * used, shared ? 1 : used});
}

}  // namespace

std::span<const OpRecord> matmul_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kMatMul, supports_matmul, prepare_matmul, matmul},
      {Op::kMatMulExperts, supports_matmul, prepare_matmul, matmul_experts},
  };
  return kRecords;
}

}  // namespace infer::cuda
