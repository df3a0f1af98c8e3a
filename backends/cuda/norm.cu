// rms_norm, layer_norm, rms, softmax and sparsify over the last dimension: a block per vector.
#include "backends/cuda/cuda_ops.h"
#include "backends/cuda/kernel.h"
#include "backends/cuda/launch.h"

namespace infer::cuda {
namespace {

constexpr unsigned kMostThreads = 512;

// Vectors of d values, per_row of them in each row of x. `parameter` is eps, or the factor of sparsify.
struct NormShape {
  RowCount count;
  int64_t d, per_row, x_stride;
  float parameter;
};

// One vector of a block.
struct Vector {
  const float* x;
  int64_t number, d;  // the number counts the vectors of all rows
};
// Returns false for padding; the block then exits.
__device__ inline bool find_vector(const NormShape& shape, const float* x, Vector& v) {
  const int64_t row = blockIdx.x / shape.per_row, which = blockIdx.x % shape.per_row;
  v = {x + row * shape.x_stride + which * shape.d, blockIdx.x, shape.d};
  return row < shape.count.rows();
}

// The sum of x - mean, or of its square, over a vector.
__device__ inline float sum_of(const Vector& v, float mean, bool squares) {
  float sum = 0;
  for (int64_t i = threadIdx.x; i < v.d; i += blockDim.x) {
    const float x = v.x[i] - mean;
    sum = squares ? fmaf(x, x, sum) : sum + x;
  }
  return block_sum(sum);
}

__global__ void __launch_bounds__(kMostThreads)
    rms_norm_kernel(NormShape shape, const float* x, const float* weight, float* out) {
  Vector v;
  if (!find_vector(shape, x, v)) return;
  const float factor = 1.0f / sqrtf(sum_of(v, 0, true) / static_cast<float>(v.d) + shape.parameter);
  for (int64_t i = threadIdx.x; i < v.d; i += blockDim.x) {
    const float y = v.x[i] * factor;
    out[v.number * v.d + i] = weight ? y * weight[i] : y;
  }
}

__global__ void __launch_bounds__(kMostThreads)
    layer_norm_kernel(NormShape shape, const float* x, const float* weight, const float* bias, float* out) {
  Vector v;
  if (!find_vector(shape, x, v)) return;
  const float mean = sum_of(v, 0, false) / static_cast<float>(v.d);
  const float factor = 1.0f / sqrtf(sum_of(v, mean, true) / static_cast<float>(v.d) + shape.parameter);
  for (int64_t i = threadIdx.x; i < v.d; i += blockDim.x) {
    float y = (v.x[i] - mean) * factor;
    if (weight) y *= weight[i];
    if (bias) y += bias[i];
    out[v.number * v.d + i] = y;
  }
}

__global__ void __launch_bounds__(kMostThreads) rms_kernel(NormShape shape, const float* x, float* out) {
  Vector v;
  if (!find_vector(shape, x, v)) return;
  const float sum = sum_of(v, 0, true);
  if (threadIdx.x == 0) out[v.number] = sqrtf(sum / static_cast<float>(v.d));
}

__global__ void __launch_bounds__(kMostThreads) softmax_kernel(NormShape shape, const float* x, float* out) {
  Vector v;
  if (!find_vector(shape, x, v)) return;
  float largest = -INFINITY, sum = 0;
  for (int64_t i = threadIdx.x; i < v.d; i += blockDim.x) largest = fmaxf(largest, v.x[i]);
  largest = block_max(largest);
  for (int64_t i = threadIdx.x; i < v.d; i += blockDim.x) sum += expf(v.x[i] - largest);
  sum = block_sum(sum);
  for (int64_t i = threadIdx.x; i < v.d; i += blockDim.x) out[v.number * v.d + i] = expf(v.x[i] - largest) / sum;
}

__global__ void __launch_bounds__(kMostThreads) sparsify_kernel(NormShape shape, const float* x, float* out) {
  Vector v;
  if (!find_vector(shape, x, v)) return;
  const float mean = sum_of(v, 0, false) / static_cast<float>(v.d);
  const float cutoff = shape.parameter * sqrtf(sum_of(v, mean, true) / static_cast<float>(v.d - 1));
  for (int64_t i = threadIdx.x; i < v.d; i += blockDim.x) {
    const float above = v.x[i] - mean - cutoff;
    out[v.number * v.d + i] = above < 0 ? 0.0f : above;  // NaN stays NaN
  }
}

// Short vectors, such as heads, need few threads.
unsigned threads_for(int64_t d) { return d > 2048 ? kMostThreads : d > 512 ? 256 : d > 128 ? 64 : 32; }

template <typename... Parameters, typename... Arguments>
void reduce(const Launch& launch, Stream& stream, float parameter, void (*kernel)(NormShape, Parameters...),
            Arguments... arguments) {
  const TensorDesc& x = *launch.inputs[0].desc;
  const int64_t d = x.shape.last(), per_row = x.shape.row_elements() / d;
  const NormShape shape = {row_count(launch, x), d, per_row, x.row_stride, parameter};
  launch_kernel(cuda_stream(stream), {dim3(static_cast<unsigned>(x.shape[0] * per_row)), threads_for(d)}, kernel, shape,
                arguments...);
}

const float* input(const Launch& launch, size_t i) { return address<const float>(launch.inputs[i]); }
float* output(const Launch& launch) { return address<float>(launch.outputs[0]); }

void rms_norm(const Prepared&, const Launch& launch, Stream& stream) {
  reduce(launch, stream, launch.param<NormParams>().eps, rms_norm_kernel, input(launch, 0), input(launch, 1),
         output(launch));
}

void layer_norm(const Prepared&, const Launch& launch, Stream& stream) {
  reduce(launch, stream, launch.param<NormParams>().eps, layer_norm_kernel, input(launch, 0), input(launch, 1),
         input(launch, 2), output(launch));
}

void rms(const Prepared&, const Launch& launch, Stream& stream) {
  reduce(launch, stream, 0, rms_kernel, input(launch, 0), output(launch));
}

void softmax(const Prepared&, const Launch& launch, Stream& stream) {
  reduce(launch, stream, 0, softmax_kernel, input(launch, 0), output(launch));
}

void sparsify(const Prepared&, const Launch& launch, Stream& stream) {
  reduce(launch, stream, launch.param<SparsifyParams>().factor, sparsify_kernel, input(launch, 0), output(launch));
}

}  // namespace

std::span<const OpRecord> norm_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kRmsNorm, supports_any, nothing_to_prepare, rms_norm},
      {Op::kLayerNorm, supports_any, nothing_to_prepare, layer_norm},
      {Op::kRms, supports_any, nothing_to_prepare, rms},
      {Op::kSoftmax, supports_any, nothing_to_prepare, softmax},
      {Op::kSparsify, supports_any, nothing_to_prepare, sparsify},
  };
  return kRecords;
}

}  // namespace infer::cuda
