// Shared by the operations on the KV cache: the types of keys and values, and the dispatches of attention.
#pragma once

#include "backends/vulkan/vulkan_ops.h"

namespace infer::vulkan {

// The number of a type in glsl/cache.glsl, or -1.
int cache_type(DataType type);
// The specialization constant for a type. Software renderers, which compile slowly, use one pipeline for all types.
uint32_t fixed_type(const Context& context, DataType type);

Operand cache_operand(VulkanStream& stream, const CacheRef& cache, bool written);
// Where the block tables of the cache's group begin in the step's inputs.
uint32_t table_at(const Launch& launch);

// Whether the shaders support such a cache: OpRecord::supports of all operations on it.
bool supports_cache(const OpDesc& op, const Device& device);

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
void attend(const Prepared& prepared, const Launch& launch, VulkanStream& stream, const AttentionInputs& inputs);

}  // namespace infer::vulkan
