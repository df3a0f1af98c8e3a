// Formats with codebooks, and ternary ones: their blocks are expanded to bytes in L1, sixteen at a time, before they
// are multiplied by many tokens (gemm_expanded.h). All of them become the same form, so only this step is compiled once
// per format. Layouts are those of ggml-like/quant/blocks.h. Included inside an anonymous namespace after codebooks.h.
//
// A format has
//   kBytes; kUnit: the scale of a block is d * kUnit
//   kPlaces: where codes are
//   block(p, codes, scales): the 256 codes (at most 64 in magnitude) and the scales of each 16 of the block at p;
//   returns the bits of d

// The order in which block() stores expanded codes. 64 values, four sub-blocks of 16, are in four pieces of 16 bytes:
// piece j of the i-th 64 values is at byte i * step + j * (80 - step). The c-th group of four values of sub-block r is
// group group[r][c] % 4 of piece group[r][c] / 4.
struct Places {
  int step;
  uint8_t group[4][4];
};
constexpr Places kInOrder = {64, {{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}}};
// The orders of the vectors of codebooks.h, for entries of 8 and of 4 values.
constexpr Places kInEights = {16, {{0, 1, 4, 5}, {8, 9, 12, 13}, {2, 3, 6, 7}, {10, 11, 14, 15}}};
constexpr Places kInFours = {16, {{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}};

struct ExpandedBlocks {
  alignas(64) int8_t codes[16][256];
  alignas(64) uint8_t scales[16][16];
  alignas(64) uint16_t d[16];
  Places places;
};

template <typename W>
struct ExpandBook {
  static constexpr int kBytes = W::kBytes;
  static constexpr float kUnit = W::kUnit;
  static constexpr Places kPlaces = W::kEntry == 8 ? kInEights : kInFours;
  static INFER_SIMD uint16_t block(const uint8_t* p, int8_t* codes, uint8_t* scales) {
    const W w(p);
    each_of_four([&]<int J>() INFER_LAMBDA {
      I x = w.template codes<J>();
      if constexpr (W::kOffset != 0) x = i_sub8(x, byte_mask(W::kOffset));
      if constexpr (W::kSigned) x = i_negate(x, w.template signs<J>());
      i_store(codes + 64 * J, x);
    });
    // Lanes 2 i and 2 i + 1 have the scales of 32 values.
    const I scale = w.scale();
    if constexpr (W::kScales == 1) i_store_s8(reinterpret_cast<int8_t*>(scales), scale);
    else i_store_s8(reinterpret_cast<int8_t*>(scales), i_join32(i_and(scale, i_set1(0xff)), i_shr<16>(scale)));
    return W::d(p);
  }
};

struct ExpandTQ1 {
  static constexpr int kBytes = 54;
  static constexpr float kUnit = 1;
  static constexpr Places kPlaces = kInOrder;
  static INFER_SIMD uint16_t block(const uint8_t* p, int8_t* codes, uint8_t* scales) {
    alignas(64) uint8_t bytes[64] = {};
    __builtin_memcpy(bytes, p, 52);
    I q = i_load(bytes);
#pragma GCC unroll 5
    for (int n = 0; n < 5; ++n) {
      // The digit is 3 q / 256, that is how many of 85 and 170 are below q. Flags are -1.
      const I shifted = i_xor(q, byte_mask(128));
      const I digits = i_sub8(i_zero(), i_gt8(shifted, byte_mask((85 - 128) & 255)));
      i_store(bytes, i_sub8(i_sub8(digits, i_gt8(shifted, byte_mask(170 - 128))), byte_mask(1)));
      __builtin_memcpy(codes + 32 * n, bytes, 32);
      __builtin_memcpy(codes + 160 + 16 * n, bytes + 32, 16);
      if (n < 4) __builtin_memcpy(codes + 240 + 4 * n, bytes + 48, 4);
      q = i_add8(i_add8(q, q), q);
    }
    __builtin_memset(scales, 1, 16);
    return load_u16(p + 52);
  }
};

struct ExpandTQ2 {
  static constexpr int kBytes = 66;
  static constexpr float kUnit = 1;
  static constexpr Places kPlaces = kInOrder;
  template <int N>
  static INFER_SIMD void quarter(I q, int8_t* codes) {
    alignas(64) uint8_t bytes[64];
    i_store(bytes, i_sub8(shift_mask<2 * N>(q, byte_mask(3)), byte_mask(1)));
    __builtin_memcpy(codes + 32 * N, bytes, 32);
    __builtin_memcpy(codes + 128 + 32 * N, bytes + 32, 32);
  }
  static INFER_SIMD uint16_t block(const uint8_t* p, int8_t* codes, uint8_t* scales) {
    const I q = i_load(p);
    quarter<0>(q, codes), quarter<1>(q, codes), quarter<2>(q, codes), quarter<3>(q, codes);
    __builtin_memset(scales, 1, 16);
    return load_u16(p + 64);
  }
};

// Expands `count` blocks, `stride` bytes apart.
using ExpandKernel = void (*)(const uint8_t* p, size_t stride, int count, ExpandedBlocks& out);
template <typename W>
INFER_OUTLINE void expand_blocks(const uint8_t* p, size_t stride, int count, ExpandedBlocks& out) {
  out.places = W::kPlaces;
  for (int i = 0; i < count; ++i, p += stride) out.d[i] = W::block(p, out.codes[i], out.scales[i]);
}
