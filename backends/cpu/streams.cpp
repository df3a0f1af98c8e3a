// mix_streams, agreement and sinkhorn.
#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/cpu/cpu_ops.h"
#include "ggml-like/float_math.h"

namespace infer::cpu {
namespace {

void mix_streams(const Prepared&, const HostLaunch& launch, Stream& stream) {
  const TensorRef &x = launch.inputs[0], &weights = launch.inputs[1], &out = launch.outputs[0];
  const int64_t streams = x.desc->shape[1], d = x.desc->shape[2], mixed = out.desc->shape[1];
  const KernelTable& kernels = cpu(stream).kernels();
  const int64_t least = 16384 / (streams * d);  // mixed vectors; fewer are not worth a thread
  parallel_ranges(cpu(stream), launch.rows(x) * mixed, least, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const float* from = x.data<float>() + i / mixed * x.desc->row_stride;
      const float* w = weights.data<float>() + i / mixed * weights.desc->row_stride + i % mixed * streams;
      float* sum = out.data<float>() + i * d;
      kernels.scale(from, w[0], sum, d);
      for (int64_t s = 1; s < streams; ++s) kernels.weighted_add(from + s * d, w[s], sum, d);
    }
  });
}

// One or a few sums per token and model: a plain loop in a fixed order.
void agreement(const Prepared&, const HostLaunch& launch, Stream& stream) {
  const TensorRef &a = launch.inputs[0], &b = launch.inputs[1], &out = launch.outputs[0];
  const int64_t n = a.desc->shape[1], d = a.desc->shape[2];
  const double scale = 1 / std::sqrt(static_cast<double>(d));
  parallel_ranges(cpu(stream), launch.rows(a) * n, 16384 / d, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const float* x = a.data<float>() + i / n * a.desc->row_stride + i % n * d;
      const float* y = b.data<float>() + i / n * b.desc->row_stride + i % n * d;
      double sum = 0;
      for (int64_t j = 0; j < d; ++j) sum += static_cast<double>(x[j]) * y[j];
      const double root = std::sqrt(std::max(std::abs(sum) * scale, kLeastAgreement));
      out.data<float>()[i] = static_cast<float>(1 / (1 + portable_exp(sum == 0 ? 0 : std::copysign(root, -sum))));
    }
  });
}

// The matrices are tiny, as many rows and columns as a model has streams: plain loops in a fixed order.
void sinkhorn(const Prepared&, const HostLaunch& launch, Stream& stream) {
  const SinkhornParams& params = launch.param<SinkhornParams>();
  const TensorRef &x = launch.inputs[0], &out = launch.outputs[0];
  const int64_t n = x.desc->shape[1];
  parallel_ranges(cpu(stream), launch.rows(x), 16, [&](int64_t begin, int64_t end, int) {
    std::vector<float> m(static_cast<size_t>(n * n));
    // Divides n values `step` apart by their sum plus eps.
    const auto normalize = [&](int64_t first, int64_t step) {
      float sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += m[first + i * step];
      sum += params.eps;
      for (int64_t i = 0; i < n; ++i) m[first + i * step] /= sum;
    };
    for (int64_t t = begin; t < end; ++t) {
      const float* from = x.data<float>() + t * x.desc->row_stride;
      for (int64_t r = 0; r < n; ++r) cpu(stream).kernels().softmax(from + r * n, m.data() + r * n, n);
      for (float& v : m) v += params.eps;
      for (int k = 0; k < params.iterations; ++k) {
        for (int64_t r = 0; k > 0 && r < n; ++r) normalize(r * n, 1);
        for (int64_t c = 0; c < n; ++c) normalize(c, n);
      }
      for (int64_t i = 0; i < n * n; ++i) out.data<float>()[t * n * n + i] = m[i % n * n + i / n];
    }
  });
}

}  // namespace

std::span<const OpRecord> streams_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kMixStreams, supports_any, nothing_to_prepare, launch_on_host<mix_streams>},
      {Op::kAgreement, supports_any, nothing_to_prepare, launch_on_host<agreement>},
      {Op::kSinkhorn, supports_any, nothing_to_prepare, launch_on_host<sinkhorn>},
  };
  return kRecords;
}

}  // namespace infer::cpu
