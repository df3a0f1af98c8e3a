// slice and concat.
#include "backends/cuda/cuda_ops.h"
#include "backends/cuda/kernel.h"
#include "backends/cuda/launch.h"

namespace infer::cuda {
namespace {

constexpr unsigned kThreads = 256;

struct SliceShape {
  RowCount count;
  int64_t n;  // values in a row of the result
  int64_t x_stride, width, begin, taken;
};
__global__ void slice_kernel(SliceShape shape, const float* x, float* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= shape.n) return;
  const int64_t from = i / shape.taken * shape.width + shape.begin + i % shape.taken;
  const int32_t rows = shape.count.rows();
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) out[row * shape.n + i] = x[row * shape.x_stride + from];
}

struct ConcatShape {
  RowCount count;
  int64_t n;  // values in a row of the result
  int64_t a_stride, b_stride, a_width, b_width;
  int64_t b_step;  // from one head of b to the next; 0: one head for all
};
__global__ void concat_kernel(ConcatShape shape, const float* a, const float* b, float* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= shape.n) return;
  const int64_t width = shape.a_width + shape.b_width, head = i / width, at = i % width;
  const int32_t rows = shape.count.rows();
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    out[row * shape.n + i] = at < shape.a_width ? a[row * shape.a_stride + head * shape.a_width + at]
                                                : b[row * shape.b_stride + head * shape.b_step + at - shape.a_width];
  }
}

dim3 grid_of(int64_t n, int64_t rows) {
  return {blocks_for(n, kThreads), static_cast<unsigned>(std::min(rows, kMostBlocksY)), 1};
}

void slice(const Prepared&, const Launch& launch, Stream& stream) {
  const SliceParams& p = launch.param<SliceParams>();
  const TensorRef &x = launch.inputs[0], &out = launch.outputs[0];
  const SliceShape shape = {row_count(launch, *x.desc),
                            out.desc->shape.row_elements(),
                            x.desc->row_stride,
                            x.desc->shape.last(),
                            p.begin,
                            p.count};
  launch_kernel(cuda_stream(stream), {grid_of(shape.n, rows_of(x)), kThreads}, slice_kernel, shape,
                address<const float>(x), address<float>(out));
}

void concat(const Prepared&, const Launch& launch, Stream& stream) {
  const TensorRef &a = launch.inputs[0], &b = launch.inputs[1], &out = launch.outputs[0];
  const int64_t b_width = b.desc->shape[2];
  const ConcatShape shape = {row_count(launch, *a.desc),
                             out.desc->shape.row_elements(),
                             a.desc->row_stride,
                             b.desc->row_stride,
                             a.desc->shape[2],
                             b_width,
                             b.desc->shape[1] == 1 ? 0 : b_width};
  launch_kernel(cuda_stream(stream), {grid_of(shape.n, rows_of(a)), kThreads}, concat_kernel, shape,
                address<const float>(a), address<const float>(b), address<float>(out));
}

}  // namespace

std::span<const OpRecord> columns_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kSlice, supports_any, nothing_to_prepare, slice},
      {Op::kConcat, supports_any, nothing_to_prepare, concat},
  };
  return kRecords;
}

}  // namespace infer::cuda
