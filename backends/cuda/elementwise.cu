// add, mul, scale, clamp, unary, xielu, gated_activation.
#include <algorithm>

#include "backends/cuda/activations.cuh"
#include "backends/cuda/cuda_ops.h"
#include "backends/cuda/launch.h"

namespace infer::cuda {
namespace {

constexpr unsigned kThreads = 256;

// The functions of one value, and of two.
struct Scale {
  float factor;
  __device__ float operator()(float x) const { return x * factor; }
};
struct Clamp {
  float low, high;
  __device__ float operator()(float x) const { return x < low ? low : x > high ? high : x; }  // NaN stays NaN
};
struct Unary {
  UnaryKind kind;
  __device__ float operator()(float x) const { return activate(kind, x); }
};
struct Xielu {
  float alpha_p, alpha_n, beta, eps;
  __device__ float operator()(float x) const {
    const float y = x > 0 ? alpha_p * x * x : alpha_n * (expm1f(x > eps ? eps : x) - x);  // NaN stays NaN
    return y + beta * x;
  }
};
struct Add {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Mul {
  __device__ float operator()(float a, float b) const { return a * b; }
};
struct Gated {
  UnaryKind kind;
  float gate_limit, activation_limit, up_limit, up_offset;
  __device__ static float at_most(float limit, float x) { return x > limit ? limit : x; }  // NaN stays NaN
  __device__ float operator()(float gate, float up) const {
    const float f = at_most(activation_limit, activate(kind, at_most(gate_limit, gate)));
    const float limited = up < -up_limit ? -up_limit : at_most(up_limit, up);
    return f * (limited + up_offset);
  }
};

// Rows of n values; those of x and b are `stride` apart.
struct MapShape {
  RowCount count;
  int64_t n, x_stride;
};
template <typename F>
__global__ void map_kernel(MapShape shape, const float* x, float* out, F f) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= shape.n) return;
  const int32_t rows = shape.count.rows();
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) out[row * shape.n + i] = f(x[row * shape.x_stride + i]);
}

// Element i of a row of a is combined with element i / repeat % period of b.
struct BinaryShape {
  RowCount count;
  int64_t n, a_stride, b_stride, b_repeat, b_period;
};
template <typename F>
__global__ void binary_kernel(BinaryShape shape, const float* a, const float* b, float* out, F f) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= shape.n) return;
  const int64_t other = i / shape.b_repeat % shape.b_period;
  const int32_t rows = shape.count.rows();
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    out[row * shape.n + i] = f(a[row * shape.a_stride + i], b[row * shape.b_stride + other]);
  }
}

dim3 grid_of(int64_t n, int64_t rows) {
  return {blocks_for(n, kThreads), static_cast<unsigned>(std::min(rows, kMostBlocksY)), 1};
}

template <typename F>
void map(const Launch& launch, Stream& stream, F f) {
  const TensorRef &x = launch.inputs[0], &out = launch.outputs[0];
  const MapShape shape = {row_count(launch, *x.desc), x.desc->shape.row_elements(), x.desc->row_stride};
  launch_kernel(cuda_stream(stream), {grid_of(shape.n, rows_of(x)), kThreads}, map_kernel<F>, shape,
                address<const float>(x), address<float>(out), f);
}

template <typename F>
void binary(const Launch& launch, Stream& stream, F f) {
  const TensorRef &a = launch.inputs[0], &b = launch.inputs[1], &out = launch.outputs[0];
  const OperandMatch match = match_operands(*a.desc, *b.desc);
  const BinaryShape shape = {row_count(launch, *a.desc),
                             a.desc->shape.row_elements(),
                             a.desc->row_stride,
                             match.by_row ? b.desc->row_stride : 0,
                             match.repeat,
                             match.period};
  launch_kernel(cuda_stream(stream), {grid_of(shape.n, rows_of(a)), kThreads}, binary_kernel<F>, shape,
                address<const float>(a), address<const float>(b), address<float>(out), f);
}

void add(const Prepared&, const Launch& launch, Stream& stream) { binary(launch, stream, Add{}); }

void mul(const Prepared&, const Launch& launch, Stream& stream) { binary(launch, stream, Mul{}); }

void gated_activation(const Prepared&, const Launch& launch, Stream& stream) {
  const GatedActivationParams& p = launch.param<GatedActivationParams>();
  binary(launch, stream, Gated{p.kind, p.gate_limit, p.activation_limit, p.up_limit, p.up_offset});
}

void scale(const Prepared&, const Launch& launch, Stream& stream) {
  map(launch, stream, Scale{launch.param<ScaleParams>().factor});
}

void clamp(const Prepared&, const Launch& launch, Stream& stream) {
  const ClampParams& p = launch.param<ClampParams>();
  map(launch, stream, Clamp{p.low, p.high});
}

void unary(const Prepared&, const Launch& launch, Stream& stream) {
  map(launch, stream, Unary{launch.param<UnaryParams>().kind});
}

void xielu(const Prepared&, const Launch& launch, Stream& stream) {
  const XieluParams& p = launch.param<XieluParams>();
  map(launch, stream, Xielu{p.alpha_p, p.alpha_n, p.beta, p.eps});
}

}  // namespace

std::span<const OpRecord> elementwise_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kAdd, supports_any, nothing_to_prepare, add},
      {Op::kMul, supports_any, nothing_to_prepare, mul},
      {Op::kScale, supports_any, nothing_to_prepare, scale},
      {Op::kClamp, supports_any, nothing_to_prepare, clamp},
      {Op::kUnary, supports_any, nothing_to_prepare, unary},
      {Op::kXielu, supports_any, nothing_to_prepare, xielu},
      {Op::kGatedActivation, supports_any, nothing_to_prepare, gated_activation},
  };
  return kRecords;
}

}  // namespace infer::cuda
