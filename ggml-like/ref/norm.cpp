// rms_norm, layer_norm, rms, softmax and sparsify over the last dimension.
#include <algorithm>
#include <cmath>

#include "ggml-like/ref/ref_ops.h"

namespace infer::ref {
namespace {

// Calls f(vector of x, its result, length) for each vector.
template <typename F>
void for_each_vector(const HostLaunch& launch, F f) {
  const TensorRef &x = launch.inputs[0], &out = launch.outputs[0];
  const int64_t d = x.desc->shape.last(), per_row = x.desc->shape.row_elements() / d, n_out = out.desc->shape.last();
  for (int64_t r = 0; r < launch.rows(x); ++r) {
    for (int64_t i = 0; i < per_row; ++i) {
      f(x.data<float>() + r * x.desc->row_stride + i * d, out.data<float>() + (r * per_row + i) * n_out, d);
    }
  }
}

void rms_norm(const Prepared&, const HostLaunch& launch, Stream&) {
  const float* weight = launch.inputs[1] ? launch.inputs[1].data<float>() : nullptr;
  const double eps = launch.param<NormParams>().eps;
  for_each_vector(launch, [&](const float* x, float* y, int64_t d) {
    double sum = 0;
    for (int64_t i = 0; i < d; ++i) sum += static_cast<double>(x[i]) * x[i];
    const double factor = 1 / std::sqrt(sum / d + eps);
    for (int64_t i = 0; i < d; ++i) y[i] = static_cast<float>(x[i] * factor * (weight ? weight[i] : 1.0));
  });
}

void layer_norm(const Prepared&, const HostLaunch& launch, Stream&) {
  const float* weight = launch.inputs[1] ? launch.inputs[1].data<float>() : nullptr;
  const float* bias = launch.inputs[2] ? launch.inputs[2].data<float>() : nullptr;
  const double eps = launch.param<NormParams>().eps;
  for_each_vector(launch, [&](const float* x, float* y, int64_t d) {
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < d; ++i) mean += x[i];
    mean /= d;
    for (int64_t i = 0; i < d; ++i) variance += (x[i] - mean) * (x[i] - mean);
    const double factor = 1 / std::sqrt(variance / d + eps);
    for (int64_t i = 0; i < d; ++i) {
      y[i] = static_cast<float>((x[i] - mean) * factor * (weight ? weight[i] : 1.0) + (bias ? bias[i] : 0.0));
    }
  });
}

void rms(const Prepared&, const HostLaunch& launch, Stream&) {
  for_each_vector(launch, [&](const float* x, float* y, int64_t d) {
    double sum = 0;
    for (int64_t i = 0; i < d; ++i) sum += static_cast<double>(x[i]) * x[i];
    *y = static_cast<float>(std::sqrt(sum / d));
  });
}

void softmax(const Prepared&, const HostLaunch& launch, Stream&) {
  for_each_vector(launch, [&](const float* x, float* y, int64_t d) {
    const double largest = *std::max_element(x, x + d);
    double sum = 0;
    for (int64_t i = 0; i < d; ++i) sum += std::exp(x[i] - largest);
    for (int64_t i = 0; i < d; ++i) y[i] = static_cast<float>(std::exp(x[i] - largest) / sum);
  });
}

void sparsify(const Prepared&, const HostLaunch& launch, Stream&) {
  const double factor = launch.param<SparsifyParams>().factor;
  for_each_vector(launch, [&](const float* x, float* y, int64_t d) {
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < d; ++i) mean += x[i];
    mean /= d;
    for (int64_t i = 0; i < d; ++i) squares += (x[i] - mean) * (x[i] - mean);
    const double deviation = std::sqrt(squares / (d - 1));
    for (int64_t i = 0; i < d; ++i) {
      const double above = x[i] - mean - factor * deviation;
      y[i] = static_cast<float>(above < 0 ? 0 : above);  // NaN stays NaN
    }
  });
}

}  // namespace

std::span<const OpRecord> norm_ops() {
  static constexpr OpRecord kRecords[] = {
      reference<rms_norm>(Op::kRmsNorm), reference<layer_norm>(Op::kLayerNorm), reference<rms>(Op::kRms),
      reference<softmax>(Op::kSoftmax),  reference<sparsify>(Op::kSparsify),
  };
  return kRecords;
}

}  // namespace infer::ref
