// The activation functions, as ggml-like/op.h defines them, and other functions based on exp and log.
#pragma once

#include "backends/cuda/kernel.h"
#include "ggml-like/op.h"

namespace infer::cuda {

__device__ inline float sigmoid_of(float x) { return 1.0f / (1.0f + expf(-x)); }

// log(1 + exp(x)).
__device__ inline float softplus_of(float x) { return (x < 0 ? 0.0f : x) + log1pf(expf(-fabsf(x))); }

__device__ inline float activate(UnaryKind kind, float x) {
  switch (kind) {
    case UnaryKind::kSilu:
      return x / (1.0f + expf(-x));
    case UnaryKind::kGeluTanh:
      return 0.5f * x * (1.0f + tanhf(0.797884561f * (x + 0.044715f * x * x * x)));
    case UnaryKind::kGeluErf:
      return 0.5f * x * (1.0f + erff(x * 0.707106781f));
    case UnaryKind::kRelu:
      return x < 0 ? 0.0f : x;  // NaN stays NaN
    case UnaryKind::kReluSquared:
      return x < 0 ? 0.0f : x * x;
    case UnaryKind::kSigmoid:
      return sigmoid_of(x);
    case UnaryKind::kTanh:
      return tanhf(x);
    case UnaryKind::kGeluQuick:
      return x / (1.0f + expf(-1.702f * x));
    case UnaryKind::kSoftplus:
      return softplus_of(x);
  }
  return x;
}

}  // namespace infer::cuda
