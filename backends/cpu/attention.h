// Shared by the attention operations: the layout of the KV cache, and how the work is split. A block holds the keys of
// each KV head as [key_dim][32 tokens], then the values of each as [32 tokens][value_dim]. In quantized types each
// head of each token is quantized separately, 32 dimensions at a time; kernels/attention_blocks.h describes the
// layout of quantized keys. A latent cache has no values, and its keys are laid out like values, [32 tokens][key_dim],
// because they also serve as values.
#pragma once

#include <span>

#include "backends/cpu/cpu_ops.h"
#include "ggml-like/error.h"
#include "ggml-like/quant/blocks.h"

namespace infer::cpu {

struct BlockLayout {
  int64_t value_row;                               // bytes of one token's values in a head; latent: of its key
  int64_t key_head, value_head, values_at, bytes;  // per head: keys, values; start of the values; block
  explicit BlockLayout(const CacheDesc& c)
      : value_row(
            static_cast<int64_t>(c.latent ? row_bytes(c.key_type, c.key_dim) : row_bytes(c.value_type, c.value_dim))),
        key_head(c.entries_per_block() * static_cast<int64_t>(row_bytes(c.key_type, c.key_dim))),
        value_head(c.latent ? 0 : kBlockTokens * value_row),
        values_at(c.latent ? 0 : key_head * c.n_kv_head),
        bytes((key_head + value_head) * c.n_kv_head) {}
};

inline uint8_t* block_at(const CacheRef& cache, const BlockLayout& layout, std::span<const int32_t> table,
                         int position) {
  const int32_t id = table[position / kBlockTokens];
  CHECK_INTERNAL(id >= 0 && id < cache.n_blocks);
  return reinterpret_cast<uint8_t*>(cache.buffer->host() + cache.offset) + id * layout.bytes;
}

inline bool is_float(DataType type) {
  return type == DataType::kF32 || type == DataType::kF16 || type == DataType::kBF16;
}

inline bool is_quantized_cache_type(DataType type) {
  return type == DataType::kQ8_0 || type == DataType::kQ4_0 || packed_cache_type(type) >= 0;
}

inline bool can_store(DataType type, int dim) {
  return is_float(type) || (is_quantized_cache_type(type) && dim % kBlock32 == 0);
}

// The F16 values at the start of a block of a quantized type: its scale, and its minimum if there is one.
inline int n_f16_of(DataType type) {
  const int packed = packed_cache_type(type);
  return packed < 0 ? 1 : kPackedCacheTypes[packed].n_f16();
}

// The kernel arguments that locate the keys and values of one KV head.
inline AttentionArgs cache_args(const CacheRef& cache, const BlockLayout& layout, int kv_head) {
  const CacheDesc& c = *cache.desc;
  AttentionArgs a;
  a.key_dim = c.key_dim;
  a.value_dim = c.value_dim;
  a.key_type = c.key_type;
  a.value_type = c.latent ? c.key_type : c.value_type;
  a.latent = c.latent;
  a.cache = reinterpret_cast<const uint8_t*>(cache.buffer->host() + cache.offset);
  a.block_bytes = layout.bytes;
  a.head_key_offset = kv_head * layout.key_head;
  a.head_value_offset = c.latent ? a.head_key_offset : layout.values_at + kv_head * layout.value_head;
  a.key_bytes = layout.key_head;
  a.value_bytes = layout.value_head;
  return a;
}

// Floats of scratch memory per thread, rounded up to whole vectors.
inline size_t scratch_floats(const CacheDesc& c) {
  const size_t decoded =
      decoded_floats(c.key_type, c.key_dim) + (c.latent ? 0 : decoded_floats(c.value_type, c.value_dim));
  return (attention_scratch_floats(c.key_dim, c.value_dim) + decoded + 15) / 16 * 16;
}

inline bool supports_cache(const OpDesc& op, const Device&) {
  const CacheDesc& c = *op.cache;
  if (!can_store(c.key_type, c.key_dim)) return false;
  return c.latent ? is_float(c.key_type) || c.value_dim % kBlock32 == 0 : can_store(c.value_type, c.value_dim);
}

// Attention to all positions that `params` lets each token see, in the cache itself. `log_sums`, if not null, receives
// the log-sum-exp of each head, [T, n_head]. `scratch` has context_scratch_bytes().
void attend_to_context(const HostLaunch& launch, CpuStream& stream, const AttentionParams& params,
                       const TensorRef& sinks, float* log_sums, float* scratch);
size_t context_scratch_bytes(const OpDesc& op, const CpuDevice& device);

// The number of equal parts into which the query heads of a KV head are split so that every thread gets work. Smaller
// parts would lose more time by reading keys again than they gain.
inline int head_parts(int heads, int64_t pieces, int threads) {
  constexpr int kFewestHeads = 8;
  int parts = 1;
  while (pieces * parts < 2 * threads && heads % (2 * parts) == 0 && heads / (2 * parts) >= kFewestHeads) parts *= 2;
  return parts;
}

}  // namespace infer::cpu
