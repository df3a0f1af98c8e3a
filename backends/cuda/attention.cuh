// Shared by the operations on the KV cache, on the host: where its rows are, and the launches of attention.
#pragma once

#include "backends/cuda/cache.cuh"
#include "backends/cuda/cuda_ops.h"

namespace infer::cuda {

CacheShape cache_shape(const Launch& launch);

// Whether the kernels support such a cache, and attention has enough shared memory for its rows.
bool supports_cache(const OpDesc& op, const Device& device);
bool supports_attention(const OpDesc& op, const Device& device);

// prepare() and launch of attention to all positions, or to some of them.
std::unique_ptr<Prepared> prepare_attention(const OpDesc& op, Device& device);
struct AttentionInputs {
  AttentionParams params;
  TensorRef sinks;
  // Of sparse_attention:
  TensorRef blocks;    // of `block` entries each; absent: the entries in params.window
  TensorRef log_sums;  // its result; absent: paged_attention
  int block = 1;
};
void attend(const Launch& launch, CudaStream& stream, const AttentionInputs& inputs);

}  // namespace infer::cuda
