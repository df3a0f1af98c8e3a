// add, mul, scale, clamp, unary, xielu, gated_activation.
#include "backends/cpu/cpu_ops.h"

namespace infer::cpu {
namespace {

// Calls f(row index, input row, output row) for the rows of the first input, several rows per piece.
template <typename F>
void for_each_row(const HostLaunch& launch, Stream& stream, const F& f) {
  const TensorRef &x = launch.inputs[0], &out = launch.outputs[0];
  const int64_t row = x.desc->shape.row_elements();
  parallel_ranges(cpu(stream), launch.rows(x), std::max<int64_t>(1, 16384 / row), [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) f(r, x.data<float>() + r * x.desc->row_stride, out.data<float>() + r * row);
  });
}

template <typename F>
void binary(const HostLaunch& launch, Stream& stream, const F& rows_of,
            void (*scaled)(const float*, float, float*, int64_t)) {
  const TensorRef &a = launch.inputs[0], &b = launch.inputs[1];
  const int64_t row = a.desc->shape.row_elements();
  const OperandMatch match = match_operands(*a.desc, *b.desc);
  for_each_row(launch, stream, [&](int64_t r, const float* x, float* y) {
    const float* other = b.data<float>() + (match.by_row ? r * b.desc->row_stride : 0);
    if (match.repeat > 1) {
      for (int64_t i = 0; i < row; i += match.repeat) scaled(x + i, other[i / match.repeat], y + i, match.repeat);
    } else {
      for (int64_t i = 0; i < row; i += match.period) rows_of(x + i, other, y + i, match.period);
    }
  });
}

void add(const Prepared&, const HostLaunch& launch, Stream& stream) {
  binary(launch, stream, cpu(stream).kernels().add, nullptr);
}

void mul(const Prepared&, const HostLaunch& launch, Stream& stream) {
  const KernelTable& kernels = cpu(stream).kernels();
  binary(launch, stream, kernels.mul, kernels.scale);
}

void scale(const Prepared&, const HostLaunch& launch, Stream& stream) {
  const float factor = launch.param<ScaleParams>().factor;
  const int64_t n = launch.inputs[0].desc->shape.row_elements();
  for_each_row(launch, stream,
               [&](int64_t, const float* x, float* y) { cpu(stream).kernels().scale(x, factor, y, n); });
}

void clamp(const Prepared&, const HostLaunch& launch, Stream& stream) {
  const ClampParams& p = launch.param<ClampParams>();
  const int64_t n = launch.inputs[0].desc->shape.row_elements();
  for_each_row(launch, stream, [&](int64_t, const float* x, float* y) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] < p.low ? p.low : x[i] > p.high ? p.high : x[i];  // NaN stays NaN
  });
}

void unary(const Prepared&, const HostLaunch& launch, Stream& stream) {
  const UnaryKind kind = launch.param<UnaryParams>().kind;
  const int64_t n = launch.inputs[0].desc->shape.row_elements();
  for_each_row(launch, stream, [&](int64_t, const float* x, float* y) { cpu(stream).kernels().unary(kind, x, y, n); });
}

void xielu(const Prepared&, const HostLaunch& launch, Stream& stream) {
  const XieluParams& params = launch.param<XieluParams>();
  const int64_t n = launch.inputs[0].desc->shape.row_elements();
  for_each_row(launch, stream,
               [&](int64_t, const float* x, float* y) { cpu(stream).kernels().xielu(params, x, y, n); });
}

void gated_activation(const Prepared&, const HostLaunch& launch, Stream& stream) {
  const GatedActivationParams& params = launch.param<GatedActivationParams>();
  const auto gated = cpu(stream).kernels().gated;
  binary(
      launch, stream, [&](const float* gate, const float* up, float* y, int64_t n) { gated(params, gate, up, y, n); },
      nullptr);
}

}  // namespace

std::span<const OpRecord> elementwise_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kAdd, supports_any, nothing_to_prepare, launch_on_host<add>},
      {Op::kMul, supports_any, nothing_to_prepare, launch_on_host<mul>},
      {Op::kScale, supports_any, nothing_to_prepare, launch_on_host<scale>},
      {Op::kClamp, supports_any, nothing_to_prepare, launch_on_host<clamp>},
      {Op::kUnary, supports_any, nothing_to_prepare, launch_on_host<unary>},
      {Op::kXielu, supports_any, nothing_to_prepare, launch_on_host<xielu>},
      {Op::kGatedActivation, supports_any, nothing_to_prepare, launch_on_host<gated_activation>},
  };
  return kRecords;
}

}  // namespace infer::cpu
