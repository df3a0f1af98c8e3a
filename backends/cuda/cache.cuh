// Rows of the KV cache. A block holds the keys of each KV head as [slot][row], then, unless the cache is latent, the
// values in the same way; a row is stored in its type as in a file (ggml-like/quant/cache_row.h).
#pragma once

#include "backends/cuda/kernel.h"
#include "ggml-like/data_type.h"
#include "ggml-like/quant/blocks.h"
#include "ggml-like/tensor.h"

namespace infer::cuda {

// at(row, i): value i of a row.
struct CacheF32 {
  __device__ static float at(const uint8_t* row, int i) { return reinterpret_cast<const float*>(row)[i]; }
};
struct CacheF16 {
  __device__ static float at(const uint8_t* row, int i) {
    return half_to_float(reinterpret_cast<const uint16_t*>(row)[i]);
  }
};
struct CacheBF16 {
  __device__ static float at(const uint8_t* row, int i) {
    return __uint_as_float(static_cast<uint32_t>(reinterpret_cast<const uint16_t*>(row)[i]) << 16);
  }
};
struct CacheQ8_0 {
  __device__ static float at(const uint8_t* row, int i) {
    const BlockQ8_0& b = reinterpret_cast<const BlockQ8_0*>(row)[i / kBlock32];
    return half_to_float(b.d) * static_cast<float>(b.qs[i % kBlock32]);
  }
};
struct CacheQ4_0 {
  __device__ static float at(const uint8_t* row, int i) {
    const BlockQ4_0& b = reinterpret_cast<const BlockQ4_0*>(row)[i / kBlock32];
    const int code = b.qs[i % 16] >> (i % kBlock32 < 16 ? 0 : 4) & 15;
    return half_to_float(b.d) * static_cast<float>(code - 8);
  }
};

// Rows whose type is only known at run time.
struct CacheRow {
  const uint8_t* data;
  DataType type;
  __device__ float at(int i) const {
    switch (type) {
      case DataType::kF16:
        return CacheF16::at(data, i);
      case DataType::kBF16:
        return CacheBF16::at(data, i);
      case DataType::kQ8_0:
        return CacheQ8_0::at(data, i);
      case DataType::kQ4_0:
        return CacheQ4_0::at(data, i);
      default:
        return CacheF32::at(data, i);
    }
  }
};
inline bool is_cache_type(DataType type) {
  return type == DataType::kF32 || type == DataType::kF16 || type == DataType::kBF16 || type == DataType::kQ8_0 ||
         type == DataType::kQ4_0;
}

// Where the rows of a layer are.
struct CacheShape {
  uint8_t* data;
  int64_t block_bytes;
  int n_kv_head, key_dim, value_dim;
  DataType key_type, value_type;
  int key_row, value_row;  // bytes
  bool latent;
  int stride, entries;  // positions for each entry, entries in a block
  // Of the step's inputs:
  const int32_t *positions, *sequences, *lengths, *table;
  int table_stride;

  __device__ uint8_t* block_of(int sequence, int position) const {
    return data + table[static_cast<int64_t>(sequence) * table_stride + position / kBlockTokens] * block_bytes;
  }
  // As in CacheDesc.
  __device__ int position_of(int entry) const { return (entry + 1) * stride - 1; }
  __device__ int slot_of(int entry) const { return entry % entries; }
  __device__ uint8_t* key(uint8_t* block, int head, int slot) const {
    return block + (static_cast<int64_t>(head) * entries + slot) * key_row;
  }
  __device__ uint8_t* value(uint8_t* block, int head, int slot) const {
    if (latent) return key(block, head, slot);
    return block + static_cast<int64_t>(n_kv_head) * entries * key_row +
           (static_cast<int64_t>(head) * entries + slot) * value_row;
  }
};

}  // namespace infer::cuda
