// matmul and matmul_experts: selects their kernels, and has the one for few rows and quantized weights, whose
// activations are quantized to int8 with a scale for each 32 values.
#include <algorithm>

#include "backends/cuda/formats.cuh"
#include "backends/cuda/matmul_rows.cuh"
#include "backends/cuda/matmul_tiled.h"

namespace infer::cuda {
namespace {

constexpr unsigned kWarps = 4;  // of a block that quantizes
constexpr int kPerScale = 32;   // activations
constexpr int kGroup = 16;      // values that are unpacked at a time

// ---- Activations ----

// Of 32 activations: the sums of the codes of each half are int16, the first one in the low half of the word.
struct alignas(8) ScaleAndSums {
  float scale;
  uint32_t sums;
  // c plus the sums times the lower two bytes of `factors`.
  __device__ int add_sums(int factors, int c) const { return __dp2a_lo(static_cast<int>(sums), factors, c); }
};

// Rows of k values: int8 codes [rows, k], then [rows, k / 32].
struct Quantized {
  int8_t* codes;
  ScaleAndSums* groups;
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
  const int code = usable && !nan ? __float2int_rn(value * inverse) : 0;
  out.codes[i * kPerScale + lane] = static_cast<int8_t>(code);
  int sum = code;  // of 16 lanes
  INFER_UNROLL
  for (int lanes = 8; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(kAllLanes, sum, lanes);
  const int second = __shfl_sync(kAllLanes, sum, 16);
  if (lane > 0) return;
  out.groups[i] = {nan      ? NAN
                   : usable ? largest / 127.0f
                            : 0.0f,
                   (static_cast<uint32_t>(sum) & 0xffffu) | static_cast<uint32_t>(second) << 16};
}

// ---- Matmuls ----

// The dot product of a run of a unit with activations, without their scale. Of 32 activations the run covers the first
// 16, the last 16 or all: byte 0 or 1 of `which`, or both, are 1.
template <typename W>
__device__ __forceinline__ float multiply_run(const Codes* run, const int8_t* codes, const ScaleAndSums& x, int which) {
  int dot = W::kBias != 0 ? x.add_sums((256 - W::kBias) * which, 0) : 0;  // int8 times each
  INFER_UNROLL
  for (int g = 0; g < W::kRunGroups; ++g) {
    const uint4 v = load_vector(codes + kGroup * g);
    dot = __dp4a(static_cast<int>(v.x), static_cast<int>(run[g].word[0]), dot);
    dot = __dp4a(static_cast<int>(v.y), static_cast<int>(run[g].word[1]), dot);
    dot = __dp4a(static_cast<int>(v.z), static_cast<int>(run[g].word[2]), dot);
    dot = __dp4a(static_cast<int>(v.w), static_cast<int>(run[g].word[3]), dot);
  }
  const float value = __fmul_rn(run->scale, static_cast<float>(dot));
  return W::kOffset ? fmaf(run->offset, static_cast<float>(x.add_sums(which, 0)), value) : value;
}

// Adds what one unit contributes to the sums of a lane.
template <typename W, int kTile, int kRows>
__device__ __forceinline__ void add_unit(const ProductShape& s, const uint8_t* const (&rows)[kRows], int unit,
                                         const int8_t* x, const ScaleAndSums* groups, RowSums<kTile, kRows>& sums) {
  constexpr int kUnit = W::kRuns * W::kRunGroups, kUnits = W::kValues / kGroup / kUnit;  // groups; units of a block
  const int block = unit / kUnits, first = W::first_group(unit % kUnits);
  Codes codes[kRows][kUnit];
  INFER_UNROLL
  for (int r = 0; r < kRows; ++r) {
    const auto& b = reinterpret_cast<const typename W::Block*>(rows[r])[block];
    INFER_UNROLL
    for (int i = 0; i < kUnit; ++i) {
      codes[r][i] = W::load(b, first + i / W::kRunGroups * W::kRunStride + i % W::kRunGroups);
    }
  }
  const int at = kGroup * W::first_group(unit);
  x += at;
  groups += at / kPerScale;
  INFER_UNROLL
  for (int t = 0; t < kTile; ++t) {
    INFER_UNROLL
    for (int run = 0; run < W::kRuns; ++run) {
      const int group = run * W::kRunStride;
      const int which = W::kRunGroups == 2 ? 0x0101 : (W::kRunStride == 1 ? run : unit & 1) ? 0x0100 : 0x0001;
      const ScaleAndSums of_x = groups[group / 2];
      INFER_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const float value = multiply_run<W>(codes[r] + run * W::kRunGroups, x + group * kGroup, of_x, which);
        sums.of[t][r] = fmaf(value, of_x.scale, sums.of[t][r]);
      }
    }
    x += s.k;
    groups += s.k / kPerScale;
  }
}

// A tile's surplus vectors are computed from whatever the memory holds, and not stored.
template <typename W, int kTile, int kRows>
__global__ void __launch_bounds__(kRowWarps* kWarp)
    product_kernel(ProductShape s, const uint8_t* weights, Quantized x, const float* bias, float* out) {
  const WarpPlace p = warp_place<kTile, kRows>(s);
  if (p.valid == 0) return;
  const VectorPlace place = place_of(s, p.first);
  const int8_t* const codes = x.codes + place.input * s.k;
  const ScaleAndSums* const groups = x.groups + place.input * (s.k / kPerScale);
  const uint8_t* rows[kRows];
  INFER_UNROLL
  for (int r = 0; r < kRows; ++r) rows[r] = weight_row(s, weights, place.expert, p.row + r);
  constexpr int kUnit = W::kRuns * W::kRunGroups * kGroup;
  const int units = static_cast<int>(s.k / kUnit);
  RowSums<kTile, kRows> sums = {};
  int unit = p.begin;
  // Two at a time where registers suffice, so that the loads of both overlap.
  if (kTile * kRows <= 2) {
    for (; unit + p.stride < units; unit += 2 * p.stride) {
      add_unit<W>(s, rows, unit, codes, groups, sums);
      add_unit<W>(s, rows, unit + p.stride, codes, groups, sums);
    }
  }
  for (; unit < units; unit += p.stride) add_unit<W>(s, rows, unit, codes, groups, sums);
  store_rows(s, p, sums, bias, place.expert, out);
}

// ---- Launches ----

// The capacity in rows, rounded up to whole tiles.
int64_t quantized_rows(const TensorDesc& x, int64_t k) {
  return (x.shape.elements() / k + kMostTile - 1) / kMostTile * kMostTile;
}
size_t quantized_bytes(const TensorDesc& x, int64_t k) {
  return static_cast<size_t>(quantized_rows(x, k) * (k + k / kPerScale * static_cast<int64_t>(sizeof(ScaleAndSums))));
}

Quantized quantize(const Launch& launch, CudaStream& stream, const Product& p) {
  const TensorDesc& x = *p.x.desc;
  std::byte* const scratch = scratch_address(launch);
  const int64_t k = p.shape.k;
  const Quantized made = {reinterpret_cast<int8_t*>(scratch),
                          reinterpret_cast<ScaleAndSums*>(scratch + quantized_rows(x, k) * k)};
  const ActivationShape shape = {row_count(launch, x), k, p.per_row, x.row_stride};
  launch_kernel(stream, {dim3(blocks_for(x.shape.elements() / kPerScale, kWarps)), kWarps * kWarp}, quantize_kernel,
                shape, address<const float>(p.x), made);
  return made;
}

void multiply(const Launch& launch, Stream& s, Product p) {
  CudaStream& stream = cuda_stream(s);
  const DataType type = p.weight.desc->type;
  if (!traits(type).quantized) return multiply_floats(stream, p);
  const Quantized x = quantize(launch, stream, p);
  // Vectors of experts do not share a matrix.
  with_tile(p.shape.experts ? 1 : p.vectors, [&](auto tile, auto rows) {
    constexpr int kTile = decltype(tile)::value, kRows = decltype(rows)::value;
    with_quantized_format(type, [&](auto w) {
      using W = decltype(w);
      p.shape.sharing =
          warps_for_row(p.shape.n, p.shape.k / (W::kRuns * W::kRunGroups * kGroup), stream.context().properties);
      const LaunchShape grid = rows_launch(p, kTile, kRows);
      launch_kernel(stream, grid, product_kernel<W, kTile, kRows>, p.shape, address<const uint8_t>(p.weight), x,
                    address<const float>(p.bias), address<float>(p.out));
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
  const Context& context = static_cast<CudaDevice&>(device).context();
  if (is_tiled(op, context)) {
    prepared->scratch_bytes = tiled_scratch_bytes(op, context);
  } else if (traits(op.inputs[1]->type).quantized) {
    prepared->scratch_bytes = quantized_bytes(x, op.inputs[1]->shape.last());
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
                              .shared_input = false,
                              .sharing = 1,
                              .neighbours = 1};
  multiply(launch, stream, {shape, x, weight, bias, out, rows_of(x), 1});
}

void matmul_experts(const Prepared&, const Launch& launch, Stream& stream) {
  if (is_tiled(launch.op, cuda_stream(stream).context())) return multiply_tiled(launch, cuda_stream(stream));
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
                              .shared_input = shared,
                              .sharing = 1,
                              .neighbours = 1};
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
