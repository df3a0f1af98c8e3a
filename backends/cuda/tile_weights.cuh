// Weights as fp16 in shared memory, for matmul_tiled.cu. A tile has rows of kStep values, in chunks of 16 bytes that
// are permuted within a row so that neither 16 bytes of 8 consecutive rows nor those that 8 threads unpack share a
// bank.
#pragma once

#include "backends/cuda/formats.cuh"

namespace infer::cuda {

constexpr int kStep = 32;           // values of a row in shared memory
constexpr int kChunks = kStep / 8;  // of a row
constexpr int kTileGroup = 16;      // values that a thread unpacks

template <int kRows>
struct HalfTile {
  uint4 chunk[kRows * kChunks];
  __device__ uint4* at(int row, int i) { return chunk + row * kChunks + (i ^ (row >> 1 & 3)); }
};

// Weights that may exceed the range of fp16 are zero in the tile of their step. If there are any (real models have
// none), a tile of only those follows, times 2^-14. With fp16 scales and codes of 8 bits no quantized weight exceeds
// 2^29; BF16 weights above 2^30 become infinite.
constexpr float kLargest = 65504.0f, kLargeFactor = 0x1p-14f;

// 16 weights of a row in the form in which they are loaded, here for a quantized format.
template <typename W>
struct TileWeights {
  static constexpr int kGroups = W::kValues / kTileGroup;  // of a block
  using Loaded = Codes;
  __device__ static Loaded load(const uint8_t* row, int group) {
    return W::load(reinterpret_cast<const typename W::Block*>(row)[group / kGroups], group % kGroups);
  }
  static constexpr bool kMayBeLarge = true;
  __device__ static bool is_large(const Loaded& c) { return fmaf(fabsf(c.scale), 128.0f, fabsf(c.offset)) > kLargest; }
  __device__ static Loaded zeros_unless(bool kept, Loaded c) {
    c.scale = kept ? c.scale : 0.0f;
    c.offset = kept ? c.offset : 0.0f;
    return c;
  }
  // Code i of a word: the byte becomes the low end of the fraction of a float at 2^23.
  __device__ static float code(uint32_t word, int i) {
    const uint32_t unsigned_codes = W::kSigned ? word ^ 0x80808080u : word;
    const float shifted = __uint_as_float(__byte_perm(unsigned_codes, 0x4b000000u, 0x7440u | static_cast<uint32_t>(i)));
    return shifted - (8388608.0f + static_cast<float>(W::kSigned ? 128 : W::kBias));
  }
  __device__ static uint32_t pair(const Loaded& c, int i, float factor) {  // values 2i and 2i + 1
    const uint32_t word = c.word[i / 2];
    const float scale = c.scale * factor, offset = c.offset * factor;
    return pack_halves(fmaf(scale, code(word, 2 * (i % 2)), offset), fmaf(scale, code(word, 2 * (i % 2) + 1), offset));
  }
};

struct Halves16 {
  Words4 half[2];
};
__device__ inline Halves16 load_halves(const uint8_t* row, int group) {
  const uint8_t* const p = row + int64_t{group} * kTileGroup * 2;
  return {{load16(p), load16(p + 16)}};
}
template <>
struct TileWeights<F16> {
  using Loaded = Halves16;
  __device__ static Loaded load(const uint8_t* row, int group) { return load_halves(row, group); }
  static constexpr bool kMayBeLarge = false;
  __device__ static bool is_large(const Loaded&) { return false; }
  __device__ static Loaded zeros_unless(bool, const Loaded& c) { return c; }
  __device__ static uint32_t pair(const Loaded& c, int i, float) { return c.half[i / 4].word[i % 4]; }
};
template <>
struct TileWeights<BF16> {
  using Loaded = Halves16;
  __device__ static Loaded load(const uint8_t* row, int group) { return load_halves(row, group); }
  __device__ static float value(const Loaded& c, int i) {
    const uint32_t word = c.half[i / 8].word[i / 2 % 4];
    return __uint_as_float(i % 2 ? word & 0xffff0000u : word << 16);
  }
  static constexpr bool kMayBeLarge = true;
  __device__ static bool is_large(const Loaded& c) {
    float most = 0;
    INFER_UNROLL
    for (int i = 0; i < kTileGroup; ++i) most = fmaxf(most, fabsf(value(c, i)));
    return most > kLargest;
  }
  __device__ static Loaded zeros_unless(bool kept, Loaded c) {
    INFER_UNROLL
    for (int i = 0; i < kTileGroup / 2; ++i) c.half[i / 4].word[i % 4] &= kept ? ~0u : 0u;
    return c;
  }
  __device__ static uint32_t pair(const Loaded& c, int i, float factor) {
    return pack_halves(value(c, 2 * i) * factor, value(c, 2 * i + 1) * factor);
  }
};

// Puts a group of a row into a tile, times a factor; zeros unless `kept`.
template <typename W, int kRows>
__device__ __forceinline__ void put_weights(HalfTile<kRows>& tile, int row, int group,
                                            const typename TileWeights<W>::Loaded& loaded, float factor, bool kept) {
  const auto weights = TileWeights<W>::zeros_unless(kept, loaded);
  INFER_UNROLL
  for (int c = 0; c < kTileGroup / 8; ++c) {
    uint32_t pairs[4];
    INFER_UNROLL
    for (int i = 0; i < 4; ++i) pairs[i] = TileWeights<W>::pair(weights, 4 * c + i, factor);
    store_vector(tile.at(row, 2 * group + c), make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]));
  }
}

}  // namespace infer::cuda
