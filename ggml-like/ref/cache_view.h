// Where the reference operations keep keys and values. Block layout: [entry][kv_head][key_dim] of the key type, then,
// unless the cache is latent, the values in the same way.
#pragma once

#include <span>

#include "ggml-like/backend.h"
#include "ggml-like/error.h"

namespace infer::ref {

// Locates one head's key or value of one entry: of one position, unless the cache has a stride.
struct CacheView {
  const CacheRef& cache;
  size_t key_bytes = row_bytes(cache.desc->key_type, cache.desc->key_dim);
  size_t value_bytes = row_bytes(cache.desc->value_type, cache.desc->stored_value_dim());
  int heads = cache.desc->n_kv_head, entries = cache.desc->entries_per_block();

  std::byte* block(std::span<const int32_t> table, int entry) const {
    const int32_t id = table[cache.desc->position_of(entry) / kBlockTokens];
    CHECK_INTERNAL(id >= 0 && id < cache.n_blocks);
    return cache.buffer->host() + cache.offset + static_cast<size_t>(id) * entries * heads * (key_bytes + value_bytes);
  }
  std::byte* key(std::span<const int32_t> table, int entry, int head) const {
    return block(table, entry) + (static_cast<size_t>(cache.desc->slot_of(entry)) * heads + head) * key_bytes;
  }
  std::byte* value(std::span<const int32_t> table, int entry, int head) const {
    return block(table, entry) + entries * heads * key_bytes +
           (static_cast<size_t>(cache.desc->slot_of(entry)) * heads + head) * value_bytes;
  }
};

}  // namespace infer::ref
