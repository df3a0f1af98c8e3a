// mix_streams, agreement and sinkhorn.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ggml-like/ref/ref_ops.h"

namespace infer::ref {
namespace {

void mix_streams(const Prepared&, const HostLaunch& launch, Stream&) {
  const TensorRef &x = launch.inputs[0], &weights = launch.inputs[1], &out = launch.outputs[0];
  const int64_t streams = x.desc->shape[1], d = x.desc->shape[2], mixed = out.desc->shape[1];
  for (int64_t r = 0; r < launch.rows(x); ++r) {
    const float* from = x.data<float>() + r * x.desc->row_stride;
    for (int64_t i = 0; i < mixed * d; ++i) {
      const float* w = weights.data<float>() + r * weights.desc->row_stride + i / d * streams;
      double sum = 0;
      for (int64_t s = 0; s < streams; ++s) sum += static_cast<double>(w[s]) * from[s * d + i % d];
      out.data<float>()[r * mixed * d + i] = static_cast<float>(sum);
    }
  }
}

void agreement(const Prepared&, const HostLaunch& launch, Stream&) {
  const TensorRef &a = launch.inputs[0], &b = launch.inputs[1], &out = launch.outputs[0];
  const int64_t n = a.desc->shape[1], d = a.desc->shape[2];
  for (int64_t i = 0; i < launch.rows(a) * n; ++i) {
    const float* x = a.data<float>() + i / n * a.desc->row_stride + i % n * d;
    const float* y = b.data<float>() + i / n * b.desc->row_stride + i % n * d;
    double sum = 0;
    for (int64_t j = 0; j < d; ++j) sum += static_cast<double>(x[j]) * y[j];
    const double root = std::sqrt(std::max(std::abs(sum) / std::sqrt(static_cast<double>(d)), kLeastAgreement));
    out.data<float>()[i] = static_cast<float>(activate(UnaryKind::kSigmoid, sum == 0 ? 0 : std::copysign(root, sum)));
  }
}

void sinkhorn(const Prepared&, const HostLaunch& launch, Stream&) {
  const SinkhornParams& params = launch.param<SinkhornParams>();
  const TensorRef &x = launch.inputs[0], &out = launch.outputs[0];
  const int64_t n = x.desc->shape[1];
  std::vector<double> m(static_cast<size_t>(n * n));
  // Divides n values `step` apart by their sum plus eps.
  const auto normalize = [&](int64_t first, int64_t step) {
    double sum = params.eps;
    for (int64_t i = 0; i < n; ++i) sum += m[first + i * step];
    for (int64_t i = 0; i < n; ++i) m[first + i * step] /= sum;
  };
  for (int64_t t = 0; t < launch.rows(x); ++t) {
    const float* from = x.data<float>() + t * x.desc->row_stride;
    for (int64_t r = 0; r < n; ++r) {
      const double best = *std::max_element(from + r * n, from + (r + 1) * n);
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += m[r * n + i] = std::exp(from[r * n + i] - best);
      for (int64_t i = 0; i < n; ++i) m[r * n + i] = m[r * n + i] / sum + params.eps;
    }
    for (int k = 0; k < params.iterations; ++k) {
      for (int64_t r = 0; k > 0 && r < n; ++r) normalize(r * n, 1);
      for (int64_t c = 0; c < n; ++c) normalize(c, n);
    }
    for (int64_t i = 0; i < n * n; ++i) {
      out.data<float>()[t * n * n + i] = static_cast<float>(m[i % n * n + i / n]);
    }
  }
}

}  // namespace

std::span<const OpRecord> streams_ops() {
  static constexpr OpRecord kRecords[] = {
      reference<mix_streams>(Op::kMixStreams),
      reference<agreement>(Op::kAgreement),
      reference<sinkhorn>(Op::kSinkhorn),
  };
  return kRecords;
}

}  // namespace infer::ref
