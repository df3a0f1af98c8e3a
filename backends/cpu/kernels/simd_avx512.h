// Sixteen lanes on AVX-512: one register. Included by kernels_avx512.cpp and kernels_avx512vnni.cpp inside their
// anonymous namespace; simd_scalar.h defines the functions common to all levels.
#define INFER_SIMD inline __attribute__((always_inline))
#define INFER_OUTLINE __attribute__((noinline))
#define INFER_MATH INFER_SIMD  // exp() and the like

#define INFER_LAMBDA __attribute__((always_inline))

struct F {
  __m512 v;
};
struct I {
  __m512i v;
};

INFER_SIMD F f_zero() { return {_mm512_setzero_ps()}; }
INFER_SIMD F f_set1(float x) { return {_mm512_set1_ps(x)}; }
INFER_SIMD F f_load(const float* p) { return {_mm512_loadu_ps(p)}; }
INFER_SIMD void f_store(float* p, F a) { _mm512_storeu_ps(p, a.v); }
INFER_SIMD F f_load_first(const float* p, int n) {
  return {_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p)};
}
INFER_SIMD void f_store_first(float* p, F a, int n) {
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), a.v);
}
INFER_SIMD F f_add(F a, F b) { return {_mm512_add_ps(a.v, b.v)}; }
INFER_SIMD F f_sub(F a, F b) { return {_mm512_sub_ps(a.v, b.v)}; }
INFER_SIMD F f_mul(F a, F b) { return {_mm512_mul_ps(a.v, b.v)}; }
INFER_SIMD F f_div(F a, F b) { return {_mm512_div_ps(a.v, b.v)}; }
INFER_SIMD F f_fma(F a, F b, F c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
INFER_SIMD F f_fnma(F a, F b, F c) { return {_mm512_fnmadd_ps(a.v, b.v, c.v)}; }
INFER_SIMD F f_max(F a, F b) { return {_mm512_max_ps(a.v, b.v)}; }
INFER_SIMD F f_min(F a, F b) { return {_mm512_min_ps(a.v, b.v)}; }
INFER_SIMD F f_from_int(I a) { return {_mm512_cvtepi32_ps(a.v)}; }
INFER_SIMD I f_round_to_int(F a) { return {_mm512_cvtps_epi32(a.v)}; }
INFER_SIMD I f_bits(F a) { return {_mm512_castps_si512(a.v)}; }
INFER_SIMD F f_from_bits(I a) { return {_mm512_castsi512_ps(a.v)}; }
INFER_SIMD F f_select_less(F a, F b, F yes, F no) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ), no.v, yes.v)};
}
INFER_SIMD F f_load_f16(const uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
INFER_SIMD void f_store_f16(uint16_t* p, F a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
INFER_SIMD F f_load_bf16(const uint16_t* p) {
  const __m512i x = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(x, 16))};
}
INFER_SIMD float f_reduce_add(F a) {
  const __m256 r8 = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 r4 = _mm_add_ps(_mm256_castps256_ps128(r8), _mm256_extractf128_ps(r8, 1));
  const __m128 r2 = _mm_add_ps(r4, _mm_movehl_ps(r4, r4));
  return _mm_cvtss_f32(_mm_add_ss(r2, _mm_shuffle_ps(r2, r2, 1)));
}

INFER_SIMD I i_zero() { return {_mm512_setzero_si512()}; }
INFER_SIMD I i_set1(int32_t x) { return {_mm512_set1_epi32(x)}; }
INFER_SIMD I i_load(const void* p) { return {_mm512_loadu_si512(p)}; }
// 16 int16 values.
INFER_SIMD I i_load_s16(const int16_t* p) {
  return {_mm512_cvtepi16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
INFER_SIMD void i_store(void* p, I a) { _mm512_storeu_si512(p, a.v); }
INFER_SIMD I i_add(I a, I b) { return {_mm512_add_epi32(a.v, b.v)}; }
INFER_SIMD I i_sub(I a, I b) { return {_mm512_sub_epi32(a.v, b.v)}; }
INFER_SIMD I i_mul(I a, I b) { return {_mm512_mullo_epi32(a.v, b.v)}; }
INFER_SIMD I i_max(I a, I b) { return {_mm512_max_epi32(a.v, b.v)}; }
INFER_SIMD I i_and(I a, I b) { return {_mm512_and_si512(a.v, b.v)}; }
INFER_SIMD I i_or(I a, I b) { return {_mm512_or_si512(a.v, b.v)}; }
INFER_SIMD I i_xor(I a, I b) { return {_mm512_xor_si512(a.v, b.v)}; }
template <int N>
INFER_SIMD I i_shl(I a) {
  return {_mm512_slli_epi32(a.v, N)};
}
template <int N>
INFER_SIMD I i_shr(I a) {
  return {_mm512_srli_epi32(a.v, N)};
}
template <int N>
INFER_SIMD I i_sar(I a) {
  return {_mm512_srai_epi32(a.v, N)};
}
INFER_SIMD void i_store_s8(int8_t* p, I a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a.v));
}
INFER_SIMD int32_t i_reduce_max(I a) { return _mm512_reduce_max_epi32(a.v); }
INFER_SIMD int32_t i_reduce_add(I a) { return _mm512_reduce_add_epi32(a.v); }
// Bytes of `table` (16 of them) at the indices 0..15 in the bytes of a.
INFER_SIMD I i_lookup(const int8_t* table, I a) {
  const __m512i t = _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(table)));
  return {_mm512_shuffle_epi8(t, a.v)};
}
// In every 4 bytes: bytes A, B, C, D of the lane, -1 gives 0.
template <int A, int B, int C, int D>
INFER_SIMD I i_bytes(I a) {
  const __m128i base = _mm_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12);
  const __m128i pick =
      _mm_set1_epi32(static_cast<int>((A & 255u) | (B & 255u) << 8 | (C & 255u) << 16 | (D & 255u) << 24));
  return {_mm512_shuffle_epi8(a.v, _mm512_broadcast_i32x4(_mm_or_si128(base, pick)))};
}

// The same 32 bytes in both halves.
INFER_SIMD I i_load_twice(const void* p) {
  return {_mm512_broadcast_i64x4(_mm256_loadu_si256(static_cast<const __m256i*>(p)))};
}
// Shifts lanes 8..15 only.
template <int N>
INFER_SIMD I i_shr_second(I a) {
  return {_mm512_srlv_epi32(a.v, _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi32(N), 1))};
}
// lanes[i] is lane i of a, then of b.
INFER_SIMD void i_store_pairs(int32_t (*lanes)[2], I a, I b) {
  const __m512i first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  _mm512_storeu_si512(lanes, _mm512_permutex2var_epi32(a.v, first, b.v));
  _mm512_storeu_si512(lanes + 8, _mm512_permutex2var_epi32(a.v, _mm512_or_si512(first, _mm512_set1_epi32(8)), b.v));
}
// Packs to int16 with saturation: each quarter gets the four lanes of a, then those of b.
INFER_SIMD I i_pack16(I a, I b) { return {_mm512_packs_epi32(a.v, b.v)}; }
// The unsigned bytes of x as int16, each repeated four times: bytes 0, 1 in quarters 0 and 1, bytes 2, 3 in 2 and 3.
INFER_SIMD I i_spread_four(int32_t x) {
  const auto order = [](int byte) INFER_LAMBDA { return static_cast<int>(0xff00ff00u) + byte * 0x10001; };
  const __m512i pick =
      _mm512_setr_epi32(order(0), order(0), order(1), order(1), order(0), order(0), order(1), order(1), order(2),
                        order(2), order(3), order(3), order(2), order(2), order(3), order(3));
  return {_mm512_shuffle_epi8(_mm512_set1_epi32(x), pick)};
}
// Eight signed bytes as int16, each repeated four times: bytes i and 4 + i in quarter i.
INFER_SIMD I i_spread_eight(const uint8_t* p) {
  const auto order = [](int byte) INFER_LAMBDA { return 0x00ff00ff + byte * 0x1000100; };
  const __m512i pick =
      _mm512_setr_epi32(order(0), order(0), order(4), order(4), order(1), order(1), order(5), order(5), order(2),
                        order(2), order(6), order(6), order(3), order(3), order(7), order(7));
  int64_t bytes;
  __builtin_memcpy(&bytes, p, 8);
  return {_mm512_srai_epi16(_mm512_shuffle_epi8(_mm512_set1_epi64(bytes), pick), 8)};
}
INFER_SIMD I i_abs8(I a) { return {_mm512_abs_epi8(a.v)}; }
INFER_SIMD I i_add8(I a, I b) { return {_mm512_add_epi8(a.v, b.v)}; }
INFER_SIMD I i_sub8(I a, I b) { return {_mm512_sub_epi8(a.v, b.v)}; }
// Per byte, as signed numbers: -1 where a > b, else 0.
INFER_SIMD I i_gt8(I a, I b) { return {_mm512_movm_epi8(_mm512_cmpgt_epi8_mask(a.v, b.v))}; }
// Lane i of a quarter is the sum of that quarter's lanes of a[i].
INFER_SIMD I i_sum_four(const I* a) {
  const auto add = [](__m512i x, __m512i y) INFER_LAMBDA {
    return _mm512_add_epi32(_mm512_unpacklo_epi32(x, y), _mm512_unpackhi_epi32(x, y));
  };
  return {add(add(a[0].v, a[2].v), add(a[1].v, a[3].v))};
}
// Quarter i is the sum of the quarters of a[i].
INFER_SIMD I i_sum_quarters(const I* a) {
  const auto add = [](__m512i x, __m512i y) INFER_LAMBDA {
    return _mm512_add_epi32(_mm512_shuffle_i32x4(x, y, 0x88), _mm512_shuffle_i32x4(x, y, 0xdd));
  };
  return {add(add(a[0].v, a[1].v), add(a[2].v, a[3].v))};
}
// 32 bytes from p on, then 32 from q on.
INFER_SIMD I i_load_two(const void* p, const void* q) {
  return {_mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256(static_cast<const __m256i*>(p))),
                             _mm256_loadu_si256(static_cast<const __m256i*>(q)), 1)};
}
// Quarters 0 + 1 and 2 + 3 of a, then those of b.
INFER_SIMD I i_sum_halves(I a, I b) {
  return {_mm512_add_epi32(_mm512_shuffle_i32x4(a.v, b.v, 0x88), _mm512_shuffle_i32x4(a.v, b.v, 0xdd))};
}
// The same 8 bytes repeated.
INFER_SIMD I i_repeat8(const void* p) {
  int64_t bytes;
  __builtin_memcpy(&bytes, p, 8);
  return {_mm512_set1_epi64(bytes)};
}
// The low 16 bits of each lane of a, or'ed with b, whose low 16 bits are zero.
INFER_SIMD I i_join16(I a, I b) { return {_mm512_ternarylogic_epi32(a.v, _mm512_set1_epi32(0xffff), b.v, 0xea)}; }
// The upper bytes of 16-bit values, as int16.
INFER_SIMD I i_widen_upper(I a) { return {_mm512_srai_epi16(a.v, 8)}; }
// Eight vectors of eight 8-byte elements, transposed.
INFER_SIMD void i_interleave(I* a) {
  __m512i pairs[8];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm512_unpacklo_epi64(a[i].v, a[i + 1].v), pairs[i + 1] = _mm512_unpackhi_epi64(a[i].v, a[i + 1].v);
  }
  for (int odd = 0; odd < 2; ++odd) {
    const __m512i even02 = _mm512_shuffle_i32x4(pairs[odd], pairs[2 + odd], 0x88);
    const __m512i odd13 = _mm512_shuffle_i32x4(pairs[odd], pairs[2 + odd], 0xdd);
    const __m512i even46 = _mm512_shuffle_i32x4(pairs[4 + odd], pairs[6 + odd], 0x88);
    const __m512i odd57 = _mm512_shuffle_i32x4(pairs[4 + odd], pairs[6 + odd], 0xdd);
    a[odd].v = _mm512_shuffle_i32x4(even02, even46, 0x88), a[4 + odd].v = _mm512_shuffle_i32x4(even02, even46, 0xdd);
    a[2 + odd].v = _mm512_shuffle_i32x4(odd13, odd57, 0x88), a[6 + odd].v = _mm512_shuffle_i32x4(odd13, odd57, 0xdd);
  }
}
// For i < 8, a[i] becomes the sums of neighbouring lanes of a[2 i] and a[2 i + 1], alternating.
INFER_SIMD void i_sum_pairs(I* a) {
  for (int i = 0; i < 8; ++i) {
    const __m512i x = a[2 * i].v, y = a[2 * i + 1].v;
    a[i].v = _mm512_add_epi32(_mm512_mask_shuffle_epi32(x, 0xaaaa, y, _MM_PERM_CCAA),
                              _mm512_mask_shuffle_epi32(y, 0x5555, x, _MM_PERM_DDBB));
  }
}

// ---- For codebooks.h ----

INFER_SIMD I i_xor3(I a, I b, I c) { return {_mm512_ternarylogic_epi32(a.v, b.v, c.v, 0x96)}; }
// (a & b) | c
INFER_SIMD I i_and_or(I a, I b, I c) { return {_mm512_ternarylogic_epi32(a.v, b.v, c.v, 0xea)}; }
// a | (b & ~c)
INFER_SIMD I i_or_andnot(I a, I b, I c) { return {_mm512_ternarylogic_epi32(a.v, b.v, c.v, 0xf4)}; }
// Even bytes of a, odd ones of b; even 32-bit words of a, odd ones of b.
INFER_SIMD I i_join8(I a, I b) { return {_mm512_ternarylogic_epi32(_mm512_set1_epi32(0x00ff00ff), a.v, b.v, 0xca)}; }
INFER_SIMD I i_join32(I a, I b) { return {_mm512_mask_mov_epi32(a.v, 0xaaaa, b.v)}; }
// 64-bit lanes.
template <int N>
INFER_SIMD I i_shr64(I a) {
  return {_mm512_srli_epi64(a.v, N)};
}
template <int N>
INFER_SIMD I i_shl64(I a) {
  return {_mm512_slli_epi64(a.v, N)};
}
// Products of 16-bit lanes: their low 16 bits, and, of unsigned lanes, their high 16 bits.
INFER_SIMD I i_mul16(I a, I b) { return {_mm512_mullo_epi16(a.v, b.v)}; }
INFER_SIMD I i_mul16_high(I a, I b) { return {_mm512_mulhi_epu16(a.v, b.v)}; }
// 32 bytes, and 16 words of 16 bits, zero-extended; eight words of 32 bits, each twice.
INFER_SIMD I i_load_u8(const uint8_t* p) {
  return {_mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
INFER_SIMD I i_load_u16(const uint8_t* p) {
  return {_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
INFER_SIMD I i_load_words_twice(const uint8_t* p) {
  const __m512i order = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
  return {
      _mm512_permutexvar_epi32(order, _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))))};
}
// The same 16 bytes in all quarters.
INFER_SIMD I i_repeat16(const uint8_t* p) {
  return {_mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
// In each quarter, the bytes of a at the indices `order`; 128 gives zero.
INFER_SIMD I i_pick(I a, I order) { return {_mm512_shuffle_epi8(a.v, order.v)}; }
// Means of unsigned bytes, rounded up.
INFER_SIMD I i_mean8(I a, I b) { return {_mm512_avg_epu8(a.v, b.v)}; }
// Bytes to be negated: where a & bits is not zero, `bits` having one bit in each byte.
struct Signs {
  __mmask64 v;
};
INFER_SIMD Signs i_signs(I a, I bits) { return {_mm512_test_epi8_mask(a.v, bits.v)}; }
INFER_SIMD I i_negate(I x, Signs signs) { return {_mm512_mask_sub_epi8(x.v, signs.v, _mm512_setzero_si512(), x.v)}; }
// Entries of a table whose indices are fields of kBits: field J of each 64-bit lane, or of each 32-bit lane.
using Fields = I;
INFER_SIMD Fields i_fields(I a) { return a; }
// Field J of kBits of each lane of kLane bytes, zero-extended to the lane. Shuffles and shifts use different ports.
template <int kLane, int J, int kBits>
INFER_SIMD __m512i field_of_lanes(__m512i fields) {
  if constexpr (J == 0) {
    constexpr int kMask = (1 << kBits) - 1;
    return _mm512_and_si512(fields, kLane == 8 ? _mm512_set1_epi64(kMask) : _mm512_set1_epi32(kMask));
  } else if constexpr ((J + 1) * kBits == 8 * kLane) {
    return kLane == 8 ? _mm512_srli_epi64(fields, J * kBits) : _mm512_srli_epi32(fields, J * kBits);
  } else {
    struct alignas(16) Order {
      int8_t v[16];
    };
    static constexpr Order kOrder = [] {
      Order o{};
      for (int i = 0; i < 16; ++i) {
        const int byte = i % kLane;
        o.v[i] = static_cast<int8_t>(byte < kBits / 8 ? i - byte + J * kBits / 8 + byte : -1);
      }
      return o;
    }();
    return _mm512_shuffle_epi8(fields,
                               _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(kOrder.v))));
  }
}
// A gather keeps the destination's lanes that are masked off. None are here, but GCC must not know that: it would leave
// the destination uninitialized, and the gather would wait for whatever wrote that register last.
INFER_SIMD __mmask16 all_lanes() {
  __mmask16 mask = 0xffff;
  asm("" : "+Yk"(mask));
  return mask;
}
template <int J, int kBits>
INFER_SIMD I i_entries8(const uint64_t* table, const Fields& fields) {
  const __m512i index = field_of_lanes<8, J, kBits>(fields.v);
  return {_mm512_mask_i64gather_epi64(_mm512_setzero_si512(), static_cast<__mmask8>(all_lanes()), index, table, 8)};
}
template <int J, int kBits>
INFER_SIMD I i_entries4(const uint32_t* table, const Fields& fields) {
  const __m512i index = field_of_lanes<4, J, kBits>(fields.v);
  return {_mm512_mask_i32gather_epi32(_mm512_setzero_si512(), all_lanes(), index, table, 4)};
}

#ifdef __AVX512VNNI__
constexpr bool kAnyUnsigned = true;  // i_dot_u8 takes all unsigned bytes, not only those up to 127
constexpr int kSignedOffset = 128;
INFER_SIMD I i_dot_u8(I acc, I w, I x) { return {_mm512_dpbusd_epi32(acc.v, w.v, x.v)}; }
INFER_SIMD I i_prepare_s8(I w) { return {_mm512_xor_si512(w.v, _mm512_set1_epi8(-128))}; }
INFER_SIMD I i_dot_s8(I acc, I w, I x) { return {_mm512_dpbusd_epi32(acc.v, w.v, x.v)}; }
INFER_SIMD I i_madd16(I acc, I a, I b) { return {_mm512_dpwssd_epi32(acc.v, a.v, b.v)}; }
#else
constexpr bool kAnyUnsigned = false;
constexpr int kSignedOffset = 0;
INFER_SIMD I i_madd16(I acc, I a, I b) { return {_mm512_add_epi32(acc.v, _mm512_madd_epi16(a.v, b.v))}; }
INFER_SIMD I i_dot_u8(I acc, I w, I x) {
  return {_mm512_add_epi32(acc.v, _mm512_madd_epi16(_mm512_maddubs_epi16(w.v, x.v), _mm512_set1_epi16(1)))};
}
INFER_SIMD I i_prepare_s8(I w) { return w; }
INFER_SIMD I i_dot_s8(I acc, I w, I x) {
  const __mmask64 negative = _mm512_movepi8_mask(w.v);
  const __m512i flipped = _mm512_mask_sub_epi8(x.v, negative, _mm512_setzero_si512(), x.v);
  return i_dot_u8(acc, {_mm512_abs_epi8(w.v)}, {flipped});
}
#endif

// Row i is the 16 bytes at p + i * stride: out[c] has in lane i bytes 4c .. 4c + 3 of row i.
INFER_SIMD void i_transpose(const uint8_t* p, size_t stride, I out[4]) {
  __m512i a[4];
  for (int i = 0; i < 4; ++i) {
    __m512i v = _mm512_castsi128_si512(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + i * stride)));
    v = _mm512_inserti32x4(v, _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + (i + 4) * stride)), 1);
    v = _mm512_inserti32x4(v, _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + (i + 8) * stride)), 2);
    a[i] = _mm512_inserti32x4(v, _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + (i + 12) * stride)), 3);
  }
  const __m512i l01 = _mm512_unpacklo_epi32(a[0], a[1]), h01 = _mm512_unpackhi_epi32(a[0], a[1]);
  const __m512i l23 = _mm512_unpacklo_epi32(a[2], a[3]), h23 = _mm512_unpackhi_epi32(a[2], a[3]);
  out[0] = {_mm512_unpacklo_epi64(l01, l23)};
  out[1] = {_mm512_unpackhi_epi64(l01, l23)};
  out[2] = {_mm512_unpacklo_epi64(h01, h23)};
  out[3] = {_mm512_unpackhi_epi64(h01, h23)};
}
// The low 16 bits of every lane, read as fp16.
INFER_SIMD F f_from_f16_lanes(I a) { return {_mm512_cvtph_ps(_mm512_cvtepi32_epi16(a.v))}; }
// The most tokens for which gemm_in_order.h is faster: for Q4_K and Q5_K, and for Q6_K.
constexpr int kInOrderTokens = 2, kInOrderTokensQ6 = 4;
constexpr InOrder kInOrderQ8 = InOrder::kPossible;
#ifdef __AVX512VNNI__
constexpr bool kPairSums = false;
constexpr bool kTokenLanes = true;
#else
// There is no byte dot product into 32 bits; products of unsigned by signed bytes are added in pairs, in 16 bits.
constexpr bool kPairSums = true;
constexpr bool kTokenLanes = false;
#endif
INFER_SIMD I i_pair_sums(I w, I x) { return {_mm512_maddubs_epi16(w.v, x.v)}; }
INFER_SIMD I i_add16(I a, I b) { return {_mm512_add_epi16(a.v, b.v)}; }
constexpr bool kNarrowPays = true;               // scaling sums as int16 where they fit is faster (kMayBeNarrow)
constexpr int kRowTile = 3;                      // panels of 16 rows in a GEMM tile
constexpr int kTokenTile = 4;                    // tokens in it
constexpr int kFewTokens = 8;                    // the most tokens for which gemm_few.h is faster than gemm.h
constexpr int kFloatRows = 4, kFloatTokens = 6;  // tile of a GEMM with float weights
constexpr int kFloatFewTokens = 4;               // and with few tokens
constexpr int kQueryTile = 8;                    // queries that share one pass over a block of keys
constexpr int kTileVectors = 2;                  // of 16 scores or dimensions that a tile of queries computes at once
constexpr int kProbeChains = 12;                 // enough to cover the latency, few enough for the registers
INFER_SIMD void keep_in_register(I& a) { asm volatile("" : "+v"(a.v)); }
INFER_SIMD void keep_in_register(F& a) { asm volatile("" : "+v"(a.v)); }
