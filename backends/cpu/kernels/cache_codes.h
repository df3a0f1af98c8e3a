// The codes of quantized keys and values, as attention_blocks.h describes their layout. Q8_0 and Q4_0 are decoded in
// registers; the types of kPackedCacheTypes need more instructions and are decoded to F32 in memory, 32 tokens at a
// time, so that they share the attention kernels of F32. Both are exact, so a type's bits do not depend on where it is
// decoded. Included inside an anonymous namespace after floats.h.

template <typename T>
INFER_SIMD I load_bytes(const T* p) {
  int32_t lanes[16];
  for (int i = 0; i < 16; ++i) lanes[i] = p[i];
  return i_load(lanes);
}

// Codes of 16 lanes. Q8_0: a byte each. Q4_0: a nibble each; low nibbles are the first 16 dimensions of a block.
struct CodesQ8 {
  static constexpr int kBytes = 32;  // of a block, after its scale
  static INFER_SIMD F load(const uint8_t* p) { return f_from_int(load_bytes(reinterpret_cast<const int8_t*>(p))); }
  static INFER_SIMD F of_dimension(const uint8_t* bytes, int dim) { return load(bytes + kBlockTokens * dim); }
  template <int Half>
  static INFER_SIMD F of_half(const uint8_t* bytes) {
    return load(bytes + 16 * Half);
  }
};
struct CodesQ4 {
  static constexpr int kBytes = 16;
  template <int Shift>
  static INFER_SIMD F load(const uint8_t* p) {
    return f_from_int(i_sub(i_and(i_sar<Shift>(load_bytes(p)), i_set1(15)), i_set1(8)));
  }
  static INFER_SIMD F of_dimension(const uint8_t* bytes, int dim) {
    return dim < 16 ? load<0>(bytes + kBlockTokens * dim) : load<4>(bytes + kBlockTokens * (dim - 16));
  }
  template <int Half>
  static INFER_SIMD F of_half(const uint8_t* bytes) {
    return load<4 * Half>(bytes);
  }
};

// ---- Packed types ----

alignas(16) constexpr int8_t kIQ4Codes[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
static_assert([] {
  for (int i = 0; i < 16; ++i) {
    if (kIQ4Codes[i] != kIQ4NLValues[i]) return false;
  }
  return true;
}());

// Low four bits of codes -> codes, all but the fifth bits.
template <int kType>
INFER_SIMD F packed_codes(I nibbles) {
  constexpr PackedCacheType kPacked = kPackedCacheTypes[kType];
  const I codes = i_and(nibbles, i_set1(15));
  if constexpr (kPacked.has_codebook) return f_from_int(i_sar<24>(i_shl<24>(i_lookup(kIQ4Codes, codes))));
  else if constexpr (kPacked.lowest != 0) return f_from_int(i_add(codes, i_set1(kPacked.lowest)));
  else return f_from_int(codes);
}

// The fifth bits of 16 dimensions in a word, and the factors that make them 16.
alignas(64) constexpr int32_t kFifthBits[16] = {1 << 0, 1 << 1, 1 << 2,  1 << 3,  1 << 4,  1 << 5,  1 << 6,  1 << 7,
                                                1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15};
alignas(64) constexpr float kFifthFactors[16] = {0x1p4f,  0x1p3f,  0x1p2f,   0x1p1f,  0x1p0f,  0x1p-1f,
                                                 0x1p-2f, 0x1p-3f, 0x1p-4f,  0x1p-5f, 0x1p-6f, 0x1p-7f,
                                                 0x1p-8f, 0x1p-9f, 0x1p-10f, 0x1p-11f};

// Adds 16 where `bits` is `bit`, which `factor` multiplies to 16; elsewhere it is 0.
INFER_SIMD F add_fifth(F codes, I bits, F factor) { return f_add(codes, f_mul(f_from_int(bits), factor)); }

// Of 32 tokens: n dimensions of keys to [n][32].
template <int kType>
INFER_OUTLINE void decode_keys(const uint8_t* keys, int n, float* to) {
  constexpr PackedCacheType kPacked = kPackedCacheTypes[kType];
  for (int first = 0; first < n;
       first += kBlock32, keys += kBlockTokens * kPacked.block_bytes(), to += 32 * kBlockTokens) {
    for (int token = 0; token < kBlockTokens; token += 16) {
      const auto* scales = reinterpret_cast<const uint16_t*>(keys) + token;
      const F scale = f_load_f16(scales), low = kPacked.has_minimum ? f_load_f16(scales + kBlockTokens) : f_zero();
      const uint8_t* bytes = keys + 2 * kBlockTokens * kPacked.n_f16() + token;
      const auto put = [&](int dim, F codes) INFER_LAMBDA {
        if constexpr (kPacked.has_fifth_bits) {
          const int bit = 1 << dim % 8;
          const I fifths = i_and(load_bytes(bytes + kBlockTokens * (dim / 8)), i_set1(bit));
          codes = add_fifth(codes, fifths, f_set1(16.0f / static_cast<float>(bit)));
        }
        F values = f_mul(scale, codes);
        if constexpr (kPacked.has_minimum) values = f_add(values, low);
        f_store(to + kBlockTokens * dim + token, values);
      };
      const uint8_t* nibbles = bytes + (kPacked.has_fifth_bits ? 4 * kBlockTokens : 0);
      for (int dim = 0; dim < 16; ++dim, nibbles += kBlockTokens) {
        const I both = load_bytes(nibbles);
        put(dim, packed_codes<kType>(both));
        put(dim + 16, packed_codes<kType>(i_sar<4>(both)));
      }
    }
  }
}

INFER_SIMD F splat_f16(const uint8_t* f16) {
  uint16_t copies[16];
  for (int i = 0; i < 16; ++i) __builtin_memcpy(copies + i, f16, sizeof(uint16_t));
  return f_load_f16(copies);
}

// The first n dimensions of `count` rows of `dim`, to rows [dim].
template <int kType>
INFER_OUTLINE void decode_rows(const uint8_t* rows, int count, int dim, int n, float* to) {
  constexpr PackedCacheType kPacked = kPackedCacheTypes[kType];
  for (int row = 0; row < count; ++row, rows += dim / kBlock32 * kPacked.block_bytes(), to += dim) {
    const uint8_t* block = rows;
    for (int first = 0; first < n; first += kBlock32, block += kPacked.block_bytes()) {
      const F scale = splat_f16(block), low = kPacked.has_minimum ? splat_f16(block + 2) : f_zero();
      const uint8_t* bytes = block + 2 * kPacked.n_f16();
      uint32_t fifths = 0;
      if constexpr (kPacked.has_fifth_bits) {
        __builtin_memcpy(&fifths, bytes, 4);
        bytes += 4;
      }
      const auto put = [&](int half, F codes) INFER_LAMBDA {
        if constexpr (kPacked.has_fifth_bits) {
          const I bits = i_and(i_set1(static_cast<int32_t>(fifths >> (16 * half))), i_load(kFifthBits));
          codes = add_fifth(codes, bits, f_load(kFifthFactors));
        }
        F values = f_mul(scale, codes);
        if constexpr (kPacked.has_minimum) values = f_add(values, low);
        f_store(to + first + 16 * half, values);
      };
      const I both = load_bytes(bytes);
      put(0, packed_codes<kType>(both));
      put(1, packed_codes<kType>(i_sar<4>(both)));
    }
  }
}

struct PackedKernels {
  int block_bytes;
  void (*keys)(const uint8_t* keys, int n, float* to);
  void (*rows)(const uint8_t* rows, int count, int dim, int n, float* to);
};
template <int kType>
constexpr PackedKernels packed_kernels() {
  return {kPackedCacheTypes[kType].block_bytes(), decode_keys<kType>, decode_rows<kType>};
}
// In the order of kPackedCacheTypes.
constexpr PackedKernels kPackedKernels[] = {packed_kernels<0>(), packed_kernels<1>(), packed_kernels<2>(),
                                            packed_kernels<3>()};
static_assert(std::size(kPackedKernels) == std::size(kPackedCacheTypes));
