// mix_streams, agreement and sinkhorn.
#include <algorithm>
#include <cmath>

#include "backends/cuda/activations.cuh"
#include "backends/cuda/cuda_ops.h"
#include "backends/cuda/launch.h"

namespace infer::cuda {
namespace {

constexpr unsigned kThreads = 256;

struct MixShape {
  RowCount count;
  int64_t n;  // values in a row of the result
  int64_t d, x_stride, weights_stride;
  int streams;
};
__global__ void mix_streams_kernel(MixShape shape, const float* x, const float* weights, float* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= shape.n) return;
  const int32_t rows = shape.count.rows();
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    const float* const w = weights + row * shape.weights_stride + i / shape.d * shape.streams;
    const float* const from = x + row * shape.x_stride + i % shape.d;
    float sum = 0;
    for (int s = 0; s < shape.streams; ++s) sum = fmaf(w[s], from[s * shape.d], sum);
    out[row * shape.n + i] = sum;
  }
}

struct AgreementShape {
  RowCount count;
  int64_t heads, d, a_stride, b_stride;
  float root_of_d;
};
// A warp per head. Sums are kept as two floats, because near 0 the root multiplies their error.
__global__ void agreement_kernel(AgreementShape shape, const float* a, const float* b, float* out) {
  const int64_t head = blockIdx.x % shape.heads, row = blockIdx.x / shape.heads;
  if (row >= shape.count.rows()) return;
  const float* const x = a + row * shape.a_stride + head * shape.d;
  const float* const y = b + row * shape.b_stride + head * shape.d;
  double sum = 0;
  for (int64_t i = threadIdx.x; i < shape.d; i += kWarp) sum += static_cast<double>(x[i]) * y[i];
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(kAllLanes, sum, lanes);
  if (threadIdx.x > 0) return;
  const float s = static_cast<float>(sum) / shape.root_of_d;
  const float root = sqrtf(fmaxf(fabsf(s), static_cast<float>(kLeastAgreement)));
  out[blockIdx.x] = sigmoid_of(s == 0 ? 0.0f : copysignf(root, s));
}

constexpr int kMostSinkhorn = 32;  // rows of a matrix: one for each lane

// A warp per matrix: each lane holds one row; columns are summed over the lanes.
__global__ void sinkhorn_kernel(RowCount count, int n, int64_t x_stride, int iterations, float eps, const float* x,
                                float* out) {
  if (static_cast<int32_t>(blockIdx.x) >= count.rows()) return;
  const float* const from = x + blockIdx.x * x_stride;
  const int lane = static_cast<int>(threadIdx.x);
  const bool used = lane < n;
  float m[kMostSinkhorn];
  float best = -INFINITY, sum = 0;
  for (int i = 0; i < n; ++i) best = used ? fmaxf(best, from[lane * n + i]) : best;
  for (int i = 0; i < n; ++i) sum += m[i] = used ? expf(from[lane * n + i] - best) : 0.0f;
  for (int i = 0; i < n; ++i) m[i] = used ? m[i] / sum + eps : 0.0f;
  for (int k = 0; k < iterations; ++k) {
    if (k > 0) {
      float row = eps;
      for (int i = 0; i < n; ++i) row += m[i];
      for (int i = 0; i < n; ++i) m[i] = used ? m[i] / row : 0.0f;
    }
    for (int i = 0; i < n; ++i) m[i] /= warp_sum(m[i]) + eps;
  }
  for (int i = 0; i < n; ++i) {
    if (used) out[blockIdx.x * static_cast<int64_t>(n) * n + i * n + lane] = m[i];  // transposed
  }
}

void mix_streams(const Prepared&, const Launch& launch, Stream& stream) {
  const TensorRef &x = launch.inputs[0], &weights = launch.inputs[1], &out = launch.outputs[0];
  const MixShape shape = {row_count(launch, *x.desc), out.desc->shape.row_elements(),
                          x.desc->shape[2],           x.desc->row_stride,
                          weights.desc->row_stride,   static_cast<int>(x.desc->shape[1])};
  const dim3 grid(blocks_for(shape.n, kThreads), static_cast<unsigned>(std::min(rows_of(x), kMostBlocksY)));
  launch_kernel(cuda_stream(stream), {grid, kThreads}, mix_streams_kernel, shape, address<const float>(x),
                address<const float>(weights), address<float>(out));
}

void agreement(const Prepared&, const Launch& launch, Stream& stream) {
  const TensorRef &a = launch.inputs[0], &b = launch.inputs[1];
  const int64_t heads = a.desc->shape[1], d = a.desc->shape[2];
  const AgreementShape shape = {row_count(launch, *a.desc),
                                heads,
                                d,
                                a.desc->row_stride,
                                b.desc->row_stride,
                                static_cast<float>(std::sqrt(static_cast<double>(d)))};
  launch_kernel(cuda_stream(stream), {dim3(static_cast<unsigned>(rows_of(a) * heads)), kWarp}, agreement_kernel, shape,
                address<const float>(a), address<const float>(b), address<float>(launch.outputs[0]));
}

bool supports_sinkhorn(const OpDesc& op, const Device&) { return op.inputs[0]->shape[1] <= kMostSinkhorn; }

void sinkhorn(const Prepared&, const Launch& launch, Stream& stream) {
  const TensorRef& x = launch.inputs[0];
  const SinkhornParams& params = launch.param<SinkhornParams>();
  launch_kernel(cuda_stream(stream), {dim3(static_cast<unsigned>(rows_of(x))), kWarp}, sinkhorn_kernel,
                row_count(launch, *x.desc), static_cast<int>(x.desc->shape[1]), x.desc->row_stride, params.iterations,
                params.eps, address<const float>(x), address<float>(launch.outputs[0]));
}

}  // namespace

std::span<const OpRecord> streams_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kMixStreams, supports_any, nothing_to_prepare, mix_streams},
      {Op::kAgreement, supports_any, nothing_to_prepare, agreement},
      {Op::kSinkhorn, supports_sinkhorn, nothing_to_prepare, sinkhorn},
  };
  return kRecords;
}

}  // namespace infer::cuda
