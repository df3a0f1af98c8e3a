// add, mul, scale, unary, gated_activation.
#include <cmath>
#include <numbers>

#include "ggml-like/ref/ref_ops.h"

namespace infer::ref {
namespace {

// out[r][i] = f(a[r][i], b at the matching place); b may have one row for all, or one value per row.
template <typename F>
void binary(const HostLaunch& launch, F f) {
  const TensorRef &a = launch.inputs[0], &b = launch.inputs[1], &out = launch.outputs[0];
  const int64_t row = a.desc->shape.row_elements(), last = a.desc->shape.last();
  const bool same = b.desc->shape == a.desc->shape && b.desc->rows == a.desc->rows;
  const bool per_row = !same && b.desc->shape.rank == 2;
  for (int64_t r = 0; r < launch.rows(a); ++r) {
    for (int64_t i = 0; i < row; ++i) {
      const int64_t at = same ? r * b.desc->row_stride + i : per_row ? r * b.desc->row_stride : i % last;
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

void unary(const Prepared&, const HostLaunch& launch, Stream&) {
  const UnaryKind kind = launch.param<UnaryParams>().kind;
  map(launch, [&](float x) { return static_cast<float>(activate(kind, x)); });
}

void gated_activation(const Prepared&, const HostLaunch& launch, Stream&) {
  const UnaryKind kind = launch.param<UnaryParams>().kind;
  binary(launch, [&](float gate, float up) { return static_cast<float>(activate(kind, gate) * up); });
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
  }
  return x;
}

std::span<const OpRecord> elementwise_ops() {
  static constexpr OpRecord kRecords[] = {
      reference<add>(Op::kAdd),
      reference<mul>(Op::kMul),
      reference<scale>(Op::kScale),
      reference<unary>(Op::kUnary),
      reference<gated_activation>(Op::kGatedActivation),
  };
  return kRecords;
}

}  // namespace infer::ref
