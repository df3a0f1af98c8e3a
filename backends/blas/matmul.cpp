// matmul with float weights and many rows on OpenBLAS. F16 and BF16 weights are converted, some rows at a time.
#include <algorithm>

#include "backends/blas/blas_ops.h"
#include "ggml-like/data_type.h"

namespace infer::blas {
namespace {

// Rows of the weight that are converted at a time: enough that the matmul outweighs packing the other operand, which
// every call repeats; few enough that they stay in the last-level cache.
constexpr int64_t kPanelRows = 512;

struct MatMulNode final : WrappedNode {
  const OpenBlas* library = nullptr;
  int n_threads = 1;
  int64_t min_rows = 0;
};

// Matmuls with fewer rows run on the wrapped device.
int64_t min_rows(DataType type, const BlasOptions& options) {
  if (traits(type).activation != ActivationFormat::kF32) return kNeverBlas;
  return type == DataType::kF32 ? options.min_rows_f32 : options.min_rows_converted;
}

size_t panel_bytes(const TensorDesc& weight) {
  if (weight.type == DataType::kF32) return 0;
  return static_cast<size_t>(std::min(kPanelRows, weight.shape[0]) * weight.shape[1]) * sizeof(float);
}

void multiply(const MatMulNode& node, const HostLaunch& launch, int64_t rows) {
  const TensorRef &x = launch.inputs[0], &w = launch.inputs[1], &out = launch.outputs[0];
  const int64_t n = w.desc->shape[0], k = w.desc->shape[1];
  node.library->set_num_threads(node.n_threads);
  if (w.desc->type == DataType::kF32) {
    node.library->multiply(rows, n, k, x.data<float>(), x.desc->row_stride, w.data<float>(), k, out.data<float>(),
                           out.desc->row_stride);
    return;
  }
  float* panel = launch.scratch.data<float>();
  for (int64_t begin = 0; begin < n; begin += kPanelRows) {
    const int64_t count = std::min(kPanelRows, n - begin);
    traits(w.desc->type)
        .to_float(w.data<std::byte>() + static_cast<size_t>(begin) * row_bytes(w.desc->type, k), panel, count * k);
    node.library->multiply(rows, count, k, x.data<float>(), x.desc->row_stride, panel, k, out.data<float>() + begin,
                           out.desc->row_stride);
  }
}

}  // namespace

std::unique_ptr<Prepared> prepare_matmul(const OpDesc& op, Device& device) {
  const auto& blas = static_cast<const BlasDevice&>(device);
  auto node = std::make_unique<MatMulNode>();
  prepare_wrapped(op, blas, *node);
  node->min_rows = min_rows(op.inputs[1]->type, blas.options());
  if (op.inputs[0]->shape[0] < node->min_rows) return node;
  node->library = &blas.library();
  node->n_threads = blas.options().n_threads;
  node->scratch_bytes = std::max(node->scratch_bytes, panel_bytes(*op.inputs[1]));
  return node;
}

void matmul(const Prepared& prepared, const HostLaunch& launch, Stream& stream) {
  const auto& node = static_cast<const MatMulNode&>(prepared);
  const int64_t rows = launch.rows(launch.inputs[0]);
  if (!node.library || rows < node.min_rows) return launch_wrapped(prepared, launch, stream);
  multiply(node, launch, rows);
  const TensorRef &bias = launch.inputs[2], &out = launch.outputs[0];
  if (!bias) return;
  const int64_t n = out.desc->shape[1];
  for (int64_t t = 0; t < rows; ++t) {
    float* y = out.data<float>() + t * out.desc->row_stride;
    for (int64_t i = 0; i < n; ++i) y[i] += bias.data<float>()[i];
  }
}

}  // namespace infer::blas
