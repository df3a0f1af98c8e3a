// slice and concat.
#include <algorithm>

#include "backends/cpu/cpu_ops.h"

namespace infer::cpu {
namespace {

constexpr int64_t kColumnPiece = 16384;  // values of a piece; fewer are not worth a thread

void slice(const Prepared&, const HostLaunch& launch, Stream& stream) {
  const SliceParams& params = launch.param<SliceParams>();
  const TensorRef &x = launch.inputs[0], &out = launch.outputs[0];
  const int64_t last = x.desc->shape.last(), parts = x.desc->shape.row_elements() / last;
  const int64_t rows_per_piece = std::max<int64_t>(1, kColumnPiece / (parts * params.count));
  parallel_ranges(cpu(stream), launch.rows(x), rows_per_piece, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const float* from = x.data<float>() + r * x.desc->row_stride + params.begin;
      float* to = out.data<float>() + r * parts * params.count;
      for (int64_t p = 0; p < parts; ++p) std::copy_n(from + p * last, params.count, to + p * params.count);
    }
  });
}

void join_columns(const Prepared&, const HostLaunch& launch, Stream& stream) {
  const TensorRef &a = launch.inputs[0], &b = launch.inputs[1], &out = launch.outputs[0];
  const int64_t heads = a.desc->shape[1], m = a.desc->shape[2], n = b.desc->shape[2];
  const int64_t b_step = b.desc->shape[1] == 1 ? 0 : n;  // one row for all heads
  const int64_t rows_per_piece = std::max<int64_t>(1, kColumnPiece / (heads * (m + n)));
  parallel_ranges(cpu(stream), launch.rows(a), rows_per_piece, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const float *left = a.data<float>() + r * a.desc->row_stride, *right = b.data<float>() + r * b.desc->row_stride;
      float* to = out.data<float>() + r * heads * (m + n);
      for (int64_t h = 0; h < heads; ++h, to += m + n) {
        std::copy_n(left + h * m, m, to);
        std::copy_n(right + h * b_step, n, to + m);
      }
    }
  });
}

}  // namespace

std::span<const OpRecord> columns_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kSlice, supports_any, nothing_to_prepare, launch_on_host<slice>},
      {Op::kConcat, supports_any, nothing_to_prepare, launch_on_host<join_columns>},
  };
  return kRecords;
}

}  // namespace infer::cpu
