// slice and concat.
#include <algorithm>

#include "ggml-like/ref/ref_ops.h"

namespace infer::ref {
namespace {

void slice(const Prepared&, const HostLaunch& launch, Stream&) {
  const SliceParams& params = launch.param<SliceParams>();
  const TensorRef &x = launch.inputs[0], &out = launch.outputs[0];
  const int64_t last = x.desc->shape.last(), parts = x.desc->shape.row_elements() / last;
  for (int64_t r = 0; r < launch.rows(x); ++r) {
    for (int64_t p = 0; p < parts; ++p) {
      std::copy_n(x.data<float>() + r * x.desc->row_stride + p * last + params.begin, params.count,
                  out.data<float>() + (r * parts + p) * params.count);
    }
  }
}

void concat(const Prepared&, const HostLaunch& launch, Stream&) {
  const TensorRef &a = launch.inputs[0], &b = launch.inputs[1], &out = launch.outputs[0];
  const int64_t heads = a.desc->shape[1], m = a.desc->shape[2], n = b.desc->shape[2];
  const int64_t b_heads = b.desc->shape[1];  // heads or 1
  for (int64_t r = 0; r < launch.rows(a); ++r) {
    for (int64_t h = 0; h < heads; ++h) {
      float* to = out.data<float>() + (r * heads + h) * (m + n);
      std::copy_n(a.data<float>() + r * a.desc->row_stride + h * m, m, to);
      std::copy_n(b.data<float>() + r * b.desc->row_stride + h % b_heads * n, n, to + m);
    }
  }
}

}  // namespace

std::span<const OpRecord> columns_ops() {
  static constexpr OpRecord kRecords[] = {
      reference<slice>(Op::kSlice),
      reference<concat>(Op::kConcat),
  };
  return kRecords;
}

}  // namespace infer::ref
