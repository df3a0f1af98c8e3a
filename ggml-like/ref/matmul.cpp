// matmul, matmul_experts: dequantized weight rows times F32 activations, summed in double.
#include <vector>

#include "ggml-like/ref/ref_ops.h"

namespace infer::ref {
namespace {

// out[i] = sum_j weight[i][j] * x[j] (+ bias[i]) for the n rows of one weight matrix of type `type`.
struct Row {
  std::vector<float> values;
  void load(DataType type, const std::byte* weight, int64_t row, int64_t k) {
    values.resize(static_cast<size_t>(k));
    traits(type).to_float(weight + row * row_bytes(type, k), values.data(), k);
  }
  float dot(const float* x) const {
    double sum = 0;
    for (size_t j = 0; j < values.size(); ++j) sum += static_cast<double>(values[j]) * x[j];
    return static_cast<float>(sum);
  }
};

void matmul(const Prepared&, const HostLaunch& launch, Stream&) {
  const TensorRef &x = launch.inputs[0], &w = launch.inputs[1], &bias = launch.inputs[2], &out = launch.outputs[0];
  const int64_t rows = launch.rows(x), n = w.desc->shape[0], k = w.desc->shape[1];
  Row row;
  for (int64_t i = 0; i < n; ++i) {
    row.load(w.desc->type, w.data<std::byte>(), i, k);
    for (int64_t t = 0; t < rows; ++t) {
      const float y = row.dot(x.data<float>() + t * x.desc->row_stride);
      out.data<float>()[t * n + i] = bias ? y + bias.data<float>()[i] : y;
    }
  }
}

void matmul_experts(const Prepared&, const HostLaunch& launch, Stream&) {
  const TensorRef &x = launch.inputs[0], &w = launch.inputs[1], &ids = launch.inputs[2], &bias = launch.inputs[3];
  const TensorRef& out = launch.outputs[0];
  const int64_t rows = launch.rows(x), experts = w.desc->shape[0], n = w.desc->shape[1], k = w.desc->shape[2];
  const int64_t used = out.desc->shape[1];
  const bool per_expert = x.desc->shape.rank == 3;
  Row row;
  for (int64_t e = 0; e < experts; ++e) {
    for (int64_t i = 0; i < n; ++i) {
      row.load(w.desc->type, w.data<std::byte>(), e * n + i, k);
      for (int64_t t = 0; t < rows; ++t) {
        for (int64_t u = 0; u < used; ++u) {
          if ((ids ? ids.data<int32_t>()[t * used + u] : u) != e) continue;
          const float y = row.dot(x.data<float>() + (per_expert ? (t * used + u) * k : t * k));
          out.data<float>()[(t * used + u) * n + i] = bias ? y + bias.data<float>()[e * n + i] : y;
        }
      }
    }
  }
}

}  // namespace

std::span<const OpRecord> matmul_ops() {
  static constexpr OpRecord kRecords[] = {
      reference<matmul>(Op::kMatMul),
      reference<matmul_experts>(Op::kMatMulExperts),
  };
  return kRecords;
}

}  // namespace infer::ref
