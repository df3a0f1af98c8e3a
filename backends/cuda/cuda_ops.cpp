#include "backends/cuda/cuda_ops.h"

#include "backends/cuda/launch.h"

namespace infer::cuda {

RowCount row_count(const Launch& launch, const TensorDesc& desc) {
  const int32_t* counts = step_address(launch);
  const auto capacity = static_cast<int32_t>(desc.shape[0]);
  switch (desc.rows) {
    case RowKind::kTokens:
      return {counts, capacity};
    case RowKind::kOutputs:
      return {counts + 1, capacity};
    case RowKind::kLogits:
      return {counts + 3, capacity};
    case RowKind::kFixed:
      break;
  }
  return {nullptr, capacity};
}

std::unique_ptr<Prepared> nothing_to_prepare(const OpDesc&, Device&) { return std::make_unique<Prepared>(); }

bool supports_any(const OpDesc&, const Device&) { return true; }

bool has_grid(const OpDesc& op, const Device&) { return op.inputs[0]->shape[0] <= kMostBlocksY; }

}  // namespace infer::cuda
