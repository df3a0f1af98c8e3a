// Rows of the KV cache. A block holds the keys of each KV head as [slot][row], then, unless the cache is latent, the
// values in the same way; a row is stored in its type as in a file (ggml-like/quant/cache_row.h).
#pragma once

#include "backends/cuda/kernel.h"
#include "ggml-like/data_type.h"
#include "ggml-like/quant/blocks.h"
#include "ggml-like/tensor.h"

namespace infer::cuda {

// at(row, i): value i of a row. load8(): values i to i + 7, at a multiple of 8; of floats, at a multiple of 16 bytes.
struct Floats8 {
  float at[8];
};
__device__ inline Floats8 load_floats(const float* p) {
  const uint4 a = load_vector(p), b = load_vector(p + 4);
  return {{__uint_as_float(a.x), __uint_as_float(a.y), __uint_as_float(a.z), __uint_as_float(a.w), __uint_as_float(b.x),
           __uint_as_float(b.y), __uint_as_float(b.z), __uint_as_float(b.w)}};
}

struct CacheF32 {
  __device__ static float at(const uint8_t* row, int i) { return reinterpret_cast<const float*>(row)[i]; }
  __device__ static Floats8 load8(const uint8_t* row, int i) {
    return load_floats(reinterpret_cast<const float*>(row) + i);
  }
};
struct CacheF16 {
  __device__ static float at(const uint8_t* row, int i) {
    return half_to_float(reinterpret_cast<const uint16_t*>(row)[i]);
  }
  __device__ static Floats8 load8(const uint8_t* row, int i) {
    const uint4 v = load_vector(row + 2 * i);
    const uint32_t w[4] = {v.x, v.y, v.z, v.w};
    Floats8 x;
    INFER_UNROLL
    for (int j = 0; j < 8; ++j) x.at[j] = half_to_float(static_cast<uint16_t>(w[j / 2] >> (16 * (j % 2))));
    return x;
  }
};
struct CacheBF16 {
  __device__ static float at(const uint8_t* row, int i) {
    return __uint_as_float(static_cast<uint32_t>(reinterpret_cast<const uint16_t*>(row)[i]) << 16);
  }
  __device__ static Floats8 load8(const uint8_t* row, int i) {
    const uint4 v = load_vector(row + 2 * i);
    const uint32_t w[4] = {v.x, v.y, v.z, v.w};
    Floats8 x;
    INFER_UNROLL
    for (int j = 0; j < 8; ++j) x.at[j] = __uint_as_float(j % 2 ? w[j / 2] & 0xffff0000u : w[j / 2] << 16);
    return x;
  }
};
// Read two bytes at a time, which is the alignment of the blocks.
struct CacheQ8_0 {
  __device__ static float at(const uint8_t* row, int i) {
    const BlockQ8_0& b = reinterpret_cast<const BlockQ8_0*>(row)[i / kBlock32];
    return half_to_float(b.d) * static_cast<float>(b.qs[i % kBlock32]);
  }
  __device__ static Floats8 load8(const uint8_t* row, int i) {
    const BlockQ8_0& b = reinterpret_cast<const BlockQ8_0*>(row)[i / kBlock32];
    const auto* pairs = reinterpret_cast<const uint16_t*>(b.qs + i % kBlock32);
    const float d = half_to_float(b.d);
    Floats8 x;
    INFER_UNROLL
    for (int j = 0; j < 8; ++j) x.at[j] = d * static_cast<float>(static_cast<int8_t>(pairs[j / 2] >> (8 * (j % 2))));
    return x;
  }
};
struct CacheQ4_0 {
  __device__ static float at(const uint8_t* row, int i) {
    const BlockQ4_0& b = reinterpret_cast<const BlockQ4_0*>(row)[i / kBlock32];
    const int code = b.qs[i % 16] >> (i % kBlock32 < 16 ? 0 : 4) & 15;
    return half_to_float(b.d) * static_cast<float>(code - 8);
  }
  __device__ static Floats8 load8(const uint8_t* row, int i) {
    const BlockQ4_0& b = reinterpret_cast<const BlockQ4_0*>(row)[i / kBlock32];
    const auto* pairs = reinterpret_cast<const uint16_t*>(b.qs + i % 16);
    const float d = half_to_float(b.d);
    const int shift = i % kBlock32 < 16 ? 0 : 4;
    Floats8 x;
    INFER_UNROLL
    for (int j = 0; j < 8; ++j) x.at[j] = d * static_cast<float>((pairs[j / 2] >> (8 * (j % 2) + shift) & 15) - 8);
    return x;
  }
};

// Q4_1, Q5_0, Q5_1 and IQ4_NL: 4-bit codes below a scale, perhaps with a minimum, fifth bits or a codebook. One struct
// for all, because kernels are compiled for every struct. Also read two bytes at a time.
struct CachePacked {
  bool minimum, fifth_bits, codebook;
  __device__ explicit CachePacked(DataType type)
      : minimum(type == DataType::kQ4_1 || type == DataType::kQ5_1),
        fifth_bits(type == DataType::kQ5_0 || type == DataType::kQ5_1),
        codebook(type == DataType::kIQ4_NL) {}
  __host__ __device__ static bool is(DataType type) {
    return type == DataType::kQ4_1 || type == DataType::kQ5_0 || type == DataType::kQ5_1 || type == DataType::kIQ4_NL;
  }
  __device__ int bits_at() const { return minimum ? 2 : 1; }  // in units of two bytes, of the fifth bits
  __device__ int nibbles_at() const { return bits_at() + (fifth_bits ? 2 : 0); }
  __device__ const uint16_t* block(const uint8_t* row, int i) const {
    return reinterpret_cast<const uint16_t*>(row) + i / kBlock32 * (nibbles_at() + 8);
  }
  // kIQ4NLValues as bytes.
  __device__ static float codebook_value(uint32_t code) {
    const uint32_t low = code & 4u ? 0xf6eaddcfu : 0xbfad9881u, high = code & 4u ? 0x71594535u : 0x26190d01u;
    return static_cast<float>(static_cast<int8_t>((code & 8u ? high : low) >> (8 * (code & 3u))));
  }
  __device__ float value(float d, float m, uint32_t nibble, uint32_t fifth) const {
    if (codebook) return d * codebook_value(nibble);
    const int code = static_cast<int>(nibble | fifth << 4) - (fifth_bits && !minimum ? 16 : 0);
    return d * static_cast<float>(code) + m;
  }
  __device__ float at(const uint8_t* row, int i) const {
    const uint16_t* const b = block(row, i);
    const int in_block = i % kBlock32;
    const uint32_t byte = b[nibbles_at() + in_block % 16 / 2] >> (8 * (in_block % 2)) & 255u;
    const uint32_t fifth = fifth_bits ? b[bits_at() + in_block / 16] >> (in_block % 16) & 1u : 0u;
    return value(half_to_float(b[0]), minimum ? half_to_float(b[1]) : 0.0f, byte >> (in_block < 16 ? 0 : 4) & 15u,
                 fifth);
  }
  __device__ Floats8 load8(const uint8_t* row, int i) const {
    const uint16_t* const b = block(row, i);
    const int in_block = i % kBlock32, shift = in_block < 16 ? 0 : 4;
    const uint16_t* const pairs = b + nibbles_at() + in_block % 16 / 2;
    const uint32_t fifths = fifth_bits ? b[bits_at() + in_block / 16] >> (in_block % 16) : 0u;
    const float d = half_to_float(b[0]), m = minimum ? half_to_float(b[1]) : 0.0f;
    Floats8 x;
    INFER_UNROLL
    for (int j = 0; j < 8; ++j) {
      x.at[j] = value(d, m, pairs[j / 2] >> (8 * (j % 2) + shift) & 15u, fifths >> j & 1u);
    }
    return x;
  }
};

// Rows whose type is only known at run time.
struct CacheRow {
  const uint8_t* data;
  DataType type;
  // Calls f with an object of the type's struct, so that a loop over a row does not branch on the type for each value.
  template <typename F>
  __device__ auto with(F f) const {
    switch (type) {
      case DataType::kF16:
        return f(CacheF16{});
      case DataType::kBF16:
        return f(CacheBF16{});
      case DataType::kQ8_0:
        return f(CacheQ8_0{});
      case DataType::kQ4_0:
        return f(CacheQ4_0{});
      case DataType::kQ4_1:
      case DataType::kQ5_0:
      case DataType::kQ5_1:
      case DataType::kIQ4_NL:
        return f(CachePacked{type});
      default:
        return f(CacheF32{});
    }
  }
  __device__ float at(int i) const {
    return with([&](auto format) { return format.at(data, i); });
  }
  __device__ Floats8 load8(int i) const {
    return with([&](auto format) { return format.load8(data, i); });
  }
};
inline bool is_cache_type(DataType type) {
  return type == DataType::kF32 || type == DataType::kF16 || type == DataType::kBF16 || type == DataType::kQ8_0 ||
         type == DataType::kQ4_0 || CachePacked::is(type);
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
