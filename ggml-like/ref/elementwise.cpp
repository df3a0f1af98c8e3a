// add, mul, scale, clamp, unary, xielu, gated_activation.
#include <cmath>
#include <numbers>

#include "ggml-like/ref/ref_ops.h"

namespace infer::ref {
namespace {

// out[r][i] = f(a[r][i], b at the matching place).
template <typename F>
void binary(const HostLaunch& launch, F f) {
  const TensorRef &a = launch.inputs[0], &b = launch.inputs[1], &out = launch.outputs[0];
  const int64_t row = a.desc->shape.row_elements();
  const OperandMatch match = match_operands(*a.desc, *b.desc);
  for (int64_t r = 0; r < launch.rows(a); ++r) {
    for (int64_t i = 0; i < row; ++i) {
      const int64_t at = (match.by_row ? r * b.desc->row_stride : 0) + i / match.repeat % match.period;
      out.data<float>()[r * row + i] = f(a.data<float>()[r * a.desc->row_stride + i], b.data<float>()[at]);
    }
  }
}

template <typename F>
void map(const HostLaunch& launch, F f) {
  const TensorRef &x = launch.inputs[0], &out = launch.outputs[0];
  const int64_t row = x.desc->shape.row_elements();
  for (int64_t r = 0; r < launch.rows(x); ++r) {
    for (int64_t i = 0; i < row; ++i) out.data<float>()[r * row + i] = f(x.data<float>()[r * x.desc->row_stride + i]);
  }
}

void add(const Prepared&, const HostLaunch& launch, Stream&) {
  binary(launch, [](float a, float b) { return a + b; });
}

void mul(const Prepared&, const HostLaunch& launch, Stream&) {
  binary(launch, [](float a, float b) { return a * b; });
}

void scale(const Prepared&, const HostLaunch& launch, Stream&) {
  const float factor = launch.param<ScaleParams>().factor;
  map(launch, [&](float x) { return x * factor; });
}

void clamp(const Prepared&, const HostLaunch& launch, Stream&) {
  const ClampParams& params = launch.param<ClampParams>();
  map(launch, [&](float x) { return x < params.low ? params.low : x > params.high ? params.high : x; });  // NaN stays
}

void unary(const Prepared&, const HostLaunch& launch, Stream&) {
  const UnaryKind kind = launch.param<UnaryParams>().kind;
  map(launch, [&](float x) { return static_cast<float>(activate(kind, x)); });
}

void xielu(const Prepared&, const HostLaunch& launch, Stream&) {
  const XieluParams& p = launch.param<XieluParams>();
  map(launch, [&](double x) {
    const double y = x > 0 ? p.alpha_p * x * x : p.alpha_n * (std::expm1(x > p.eps ? p.eps : x) - x);  // NaN stays NaN
    return static_cast<float>(y + p.beta * x);
  });
}

void gated_activation(const Prepared&, const HostLaunch& launch, Stream&) {
  const GatedActivationParams& p = launch.param<GatedActivationParams>();
  const auto at_most = [](double limit, double x) { return x > limit ? limit : x; };  // NaN stays NaN
  binary(launch, [&](float gate, float up) {
    const double f = at_most(p.activation_limit, activate(p.kind, at_most(p.gate_limit, gate)));
    const double limited = up < -p.up_limit ? -p.up_limit : at_most(p.up_limit, up);
    return static_cast<float>(f * (limited + p.up_offset));
  });
}

}  // namespace

double activate(UnaryKind kind, double x) {
  switch (kind) {
    case UnaryKind::kSilu:
      return x / (1 + std::exp(-x));
    case UnaryKind::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case UnaryKind::kGeluErf:
      return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
    case UnaryKind::kRelu:
      return x < 0 ? 0 : x;  // NaN stays NaN
    case UnaryKind::kReluSquared:
      return x < 0 ? 0 : x * x;
    case UnaryKind::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case UnaryKind::kTanh:
      return std::tanh(x);
    case UnaryKind::kGeluQuick:
      return x / (1 + std::exp(-1.702 * x));
    case UnaryKind::kSoftplus:
      return std::fmax(x, 0) + std::log1p(std::exp(-std::abs(x)));
  }
  return x;
}

std::span<const OpRecord> elementwise_ops() {
  static constexpr OpRecord kRecords[] = {
      reference<add>(Op::kAdd),
      reference<mul>(Op::kMul),
      reference<scale>(Op::kScale),
      reference<clamp>(Op::kClamp),
      reference<unary>(Op::kUnary),
      reference<xielu>(Op::kXielu),
      reference<gated_activation>(Op::kGatedActivation),
  };
  return kRecords;
}

}  // namespace infer::ref
