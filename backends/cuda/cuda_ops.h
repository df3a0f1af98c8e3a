// Shared by the operations of the CUDA backend, on the host. There is one .cu file per operation or family, with the
// same name as in ggml-like/ref and its records at the end.
//
// A launch function runs once per segment, while the segment is captured. It must not use the step's counts, only its
// capacity: kernels read what changes between steps from the step's inputs.
#pragma once

#include "backends/cuda/stream.h"
#include "ggml-like/backend.h"

namespace infer::cuda {

// The device as its operations see it.
class CudaDevice : public Device {
 public:
  virtual Context& context() const = 0;
};

// The address of a tensor, or null for an absent input.
template <typename T>
T* address(const TensorRef& tensor) {
  if (!tensor) return nullptr;
  return reinterpret_cast<T*>(static_cast<const CudaBuffer&>(*tensor.buffer).data() + tensor.offset);
}
inline const int32_t* step_address(const Launch& launch) {
  return reinterpret_cast<const int32_t*>(static_cast<const CudaBuffer&>(*launch.step_buffer).data());
}

// The rows of a tensor that hold data: a count among the step's inputs, or a number.
struct RowCount {
  const int32_t* counted;  // in the device's memory, or null
  int32_t fixed;
  __device__ int32_t rows() const { return counted ? *counted : fixed; }
};

inline std::byte* scratch_address(const Launch& launch) {
  return static_cast<const CudaBuffer&>(*launch.scratch.buffer).data() + launch.scratch.offset;
}

RowCount row_count(const Launch& launch, const TensorDesc& desc);
inline int64_t rows_of(const TensorRef& tensor) { return tensor.desc->shape[0]; }  // the capacity

std::unique_ptr<Prepared> nothing_to_prepare(const OpDesc& op, Device& device);
bool supports_any(const OpDesc& op, const Device& device);
// Whether a grid has room for a block per row of the first input, in y or z.
bool has_grid(const OpDesc& op, const Device& device);

// The operations of each file, for cuda_device.cpp.
std::span<const OpRecord> attention_ops();
std::span<const OpRecord> columns_ops();
std::span<const OpRecord> delta_rule_ops();
std::span<const OpRecord> elementwise_ops();
std::span<const OpRecord> kv_store_ops();
std::span<const OpRecord> matmul_ops();
std::span<const OpRecord> moe_ops();
std::span<const OpRecord> norm_ops();
std::span<const OpRecord> recurrent_ops();
std::span<const OpRecord> rope_ops();
std::span<const OpRecord> rows_ops();
std::span<const OpRecord> sparse_attention_ops();
std::span<const OpRecord> streams_ops();
std::span<const OpRecord> top_k_ops();

}  // namespace infer::cuda
