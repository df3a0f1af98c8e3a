// Sixteen lanes on AVX2: two registers. Included by kernels_avx2.cpp and kernels_avxvnni.cpp inside their anonymous
// namespace; simd_scalar.h defines the functions common to all levels.
#define INFER_SIMD inline __attribute__((always_inline))
#define INFER_OUTLINE __attribute__((noinline))
#define INFER_MATH INFER_SIMD  // exp() and the like

#define INFER_LAMBDA __attribute__((always_inline))

struct F {
  __m256 v[2];
};
struct I {
  __m256i v[2];
};
// The body of a function that computes the expression for each register h of its result.
#define INFER_EACH(type, expression)      \
  type r;                                 \
  {                                       \
    [[maybe_unused]] constexpr int h = 0; \
    r.v[0] = expression;                  \
  }                                       \
  {                                       \
    [[maybe_unused]] constexpr int h = 1; \
    r.v[1] = expression;                  \
  }                                       \
  return r

INFER_SIMD F f_zero() { INFER_EACH(F, _mm256_setzero_ps()); }
INFER_SIMD F f_set1(float x) { INFER_EACH(F, _mm256_set1_ps(x)); }
INFER_SIMD F f_load(const float* p) { INFER_EACH(F, _mm256_loadu_ps(p + 8 * h)); }
INFER_SIMD void f_store(float* p, F a) {
  _mm256_storeu_ps(p, a.v[0]);
  _mm256_storeu_ps(p + 8, a.v[1]);
}
INFER_SIMD __m256i first_mask(int n, int h) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n - 8 * h), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
INFER_SIMD F f_load_first(const float* p, int n) { INFER_EACH(F, _mm256_maskload_ps(p + 8 * h, first_mask(n, h))); }
INFER_SIMD void f_store_first(float* p, F a, int n) {
  _mm256_maskstore_ps(p, first_mask(n, 0), a.v[0]);
  _mm256_maskstore_ps(p + 8, first_mask(n, 1), a.v[1]);
}
INFER_SIMD F f_add(F a, F b) { INFER_EACH(F, _mm256_add_ps(a.v[h], b.v[h])); }
INFER_SIMD F f_sub(F a, F b) { INFER_EACH(F, _mm256_sub_ps(a.v[h], b.v[h])); }
INFER_SIMD F f_mul(F a, F b) { INFER_EACH(F, _mm256_mul_ps(a.v[h], b.v[h])); }
INFER_SIMD F f_div(F a, F b) { INFER_EACH(F, _mm256_div_ps(a.v[h], b.v[h])); }
INFER_SIMD F f_fma(F a, F b, F c) { INFER_EACH(F, _mm256_fmadd_ps(a.v[h], b.v[h], c.v[h])); }
INFER_SIMD F f_fnma(F a, F b, F c) { INFER_EACH(F, _mm256_fnmadd_ps(a.v[h], b.v[h], c.v[h])); }
INFER_SIMD F f_max(F a, F b) { INFER_EACH(F, _mm256_max_ps(a.v[h], b.v[h])); }
INFER_SIMD F f_min(F a, F b) { INFER_EACH(F, _mm256_min_ps(a.v[h], b.v[h])); }
INFER_SIMD F f_from_int(I a) { INFER_EACH(F, _mm256_cvtepi32_ps(a.v[h])); }
INFER_SIMD I f_round_to_int(F a) { INFER_EACH(I, _mm256_cvtps_epi32(a.v[h])); }
INFER_SIMD I f_bits(F a) { INFER_EACH(I, _mm256_castps_si256(a.v[h])); }
INFER_SIMD F f_from_bits(I a) { INFER_EACH(F, _mm256_castsi256_ps(a.v[h])); }
INFER_SIMD F f_select_less(F a, F b, F yes, F no) {
  INFER_EACH(F, _mm256_blendv_ps(no.v[h], yes.v[h], _mm256_cmp_ps(a.v[h], b.v[h], _CMP_LT_OQ)));
}
INFER_SIMD F f_load_f16(const uint16_t* p) {
  INFER_EACH(F, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8 * h))));
}
INFER_SIMD
void f_store_f16(uint16_t* p, F a) {
  for (int h = 0; h < 2; ++h) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8 * h),
                     _mm256_cvtps_ph(a.v[h], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
}
INFER_SIMD F f_load_bf16(const uint16_t* p) {
  INFER_EACH(F, _mm256_castsi256_ps(_mm256_slli_epi32(
                    _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8 * h))), 16)));
}
INFER_SIMD
float f_reduce_add(F a) {
  const __m256 r8 = _mm256_add_ps(a.v[0], a.v[1]);
  const __m128 r4 = _mm_add_ps(_mm256_castps256_ps128(r8), _mm256_extractf128_ps(r8, 1));
  const __m128 r2 = _mm_add_ps(r4, _mm_movehl_ps(r4, r4));
  return _mm_cvtss_f32(_mm_add_ss(r2, _mm_shuffle_ps(r2, r2, 1)));
}

INFER_SIMD I i_zero() { INFER_EACH(I, _mm256_setzero_si256()); }
INFER_SIMD I i_set1(int32_t x) { INFER_EACH(I, _mm256_set1_epi32(x)); }
INFER_SIMD I i_load(const void* p) { INFER_EACH(I, _mm256_loadu_si256(static_cast<const __m256i*>(p) + h)); }
// 16 int16 values.
INFER_SIMD I i_load_s16(const int16_t* p) {
  INFER_EACH(I, _mm256_cvtepi16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8 * h))));
}
INFER_SIMD void i_store(void* p, I a) {
  _mm256_storeu_si256(static_cast<__m256i*>(p), a.v[0]);
  _mm256_storeu_si256(static_cast<__m256i*>(p) + 1, a.v[1]);
}
INFER_SIMD I i_add(I a, I b) { INFER_EACH(I, _mm256_add_epi32(a.v[h], b.v[h])); }
INFER_SIMD I i_sub(I a, I b) { INFER_EACH(I, _mm256_sub_epi32(a.v[h], b.v[h])); }
INFER_SIMD I i_mul(I a, I b) { INFER_EACH(I, _mm256_mullo_epi32(a.v[h], b.v[h])); }
INFER_SIMD I i_max(I a, I b) { INFER_EACH(I, _mm256_max_epi32(a.v[h], b.v[h])); }
INFER_SIMD I i_and(I a, I b) { INFER_EACH(I, _mm256_and_si256(a.v[h], b.v[h])); }
INFER_SIMD I i_or(I a, I b) { INFER_EACH(I, _mm256_or_si256(a.v[h], b.v[h])); }
INFER_SIMD I i_xor(I a, I b) { INFER_EACH(I, _mm256_xor_si256(a.v[h], b.v[h])); }
template <int N>
INFER_SIMD I i_shl(I a) {
  INFER_EACH(I, _mm256_slli_epi32(a.v[h], N));
}
template <int N>
INFER_SIMD I i_shr(I a) {
  INFER_EACH(I, _mm256_srli_epi32(a.v[h], N));
}
template <int N>
INFER_SIMD I i_sar(I a) {
  INFER_EACH(I, _mm256_srai_epi32(a.v[h], N));
}
INFER_SIMD void i_store_s8(int8_t* p, I a) {
  const __m256i half = _mm256_permute4x64_epi64(_mm256_packs_epi32(a.v[0], a.v[1]), 0xd8);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm_packs_epi16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1)));
}
INFER_SIMD int32_t i_reduce_max(I a) {
  const __m256i m = _mm256_max_epi32(a.v[0], a.v[1]);
  __m128i r = _mm_max_epi32(_mm256_castsi256_si128(m), _mm256_extracti128_si256(m, 1));
  r = _mm_max_epi32(r, _mm_shuffle_epi32(r, 0x4e));
  return _mm_cvtsi128_si32(_mm_max_epi32(r, _mm_shuffle_epi32(r, 0xb1)));
}
INFER_SIMD int32_t i_reduce_add(I a) {
  const __m256i m = _mm256_add_epi32(a.v[0], a.v[1]);
  __m128i r = _mm_add_epi32(_mm256_castsi256_si128(m), _mm256_extracti128_si256(m, 1));
  r = _mm_add_epi32(r, _mm_shuffle_epi32(r, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(r, _mm_shuffle_epi32(r, 0xb1)));
}
INFER_SIMD I i_lookup(const int8_t* table, I a) {
  INFER_EACH(I, _mm256_shuffle_epi8(
                    _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(table))), a.v[h]));
}
template <int A, int B, int C, int D>
INFER_SIMD I i_bytes(I a) {
  const __m128i base = _mm_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12);
  const __m128i pick =
      _mm_set1_epi32(static_cast<int>((A & 255u) | (B & 255u) << 8 | (C & 255u) << 16 | (D & 255u) << 24));
  const __m256i order = _mm256_broadcastsi128_si256(_mm_or_si128(base, pick));
  return {{_mm256_shuffle_epi8(a.v[0], order), _mm256_shuffle_epi8(a.v[1], order)}};
}
// The same 32 bytes in both halves.
INFER_SIMD I i_load_twice(const void* p) { INFER_EACH(I, _mm256_loadu_si256(static_cast<const __m256i*>(p))); }
// Shifts lanes 8..15 only.
template <int N>
INFER_SIMD I i_shr_second(I a) {
  return {{a.v[0], _mm256_srli_epi32(a.v[1], N)}};
}
// lanes[i] is lane i of a, then of b.
INFER_SIMD void i_store_pairs(int32_t (*lanes)[2], I a, I b) {
  alignas(32) int32_t t[2][16];
  i_store(t[0], a), i_store(t[1], b);
  for (int i = 0; i < 16; ++i) lanes[i][0] = t[0][i], lanes[i][1] = t[1][i];
}
// Packs to int16 with saturation: each quarter gets the four lanes of a, then those of b.
INFER_SIMD I i_pack16(I a, I b) { INFER_EACH(I, _mm256_packs_epi32(a.v[h], b.v[h])); }
// The unsigned bytes of x as int16, each repeated four times: bytes 0, 1 in quarters 0 and 1, bytes 2, 3 in 2 and 3.
INFER_SIMD I i_spread_four(int32_t x) {
  const auto order = [](int byte) INFER_LAMBDA { return static_cast<int>(0xff00ff00u) + byte * 0x10001; };
  const auto pick = [&](int h) INFER_LAMBDA {
    return _mm256_setr_epi32(order(2 * h), order(2 * h), order(2 * h + 1), order(2 * h + 1), order(2 * h), order(2 * h),
                             order(2 * h + 1), order(2 * h + 1));
  };
  INFER_EACH(I, _mm256_shuffle_epi8(_mm256_set1_epi32(x), pick(h)));
}
// Eight signed bytes as int16, each repeated four times: bytes i and 4 + i in quarter i.
INFER_SIMD I i_spread_eight(const uint8_t* p) {
  const auto order = [](int byte) INFER_LAMBDA { return 0x00ff00ff + byte * 0x1000100; };
  const auto pick = [&](int h) INFER_LAMBDA {
    return _mm256_setr_epi32(order(2 * h), order(2 * h), order(2 * h + 4), order(2 * h + 4), order(2 * h + 1),
                             order(2 * h + 1), order(2 * h + 5), order(2 * h + 5));
  };
  int64_t bytes;
  __builtin_memcpy(&bytes, p, 8);
  INFER_EACH(I, _mm256_srai_epi16(_mm256_shuffle_epi8(_mm256_set1_epi64x(bytes), pick(h)), 8));
}
INFER_SIMD I i_abs8(I a) { INFER_EACH(I, _mm256_abs_epi8(a.v[h])); }
INFER_SIMD I i_add8(I a, I b) { INFER_EACH(I, _mm256_add_epi8(a.v[h], b.v[h])); }
INFER_SIMD I i_sub8(I a, I b) { INFER_EACH(I, _mm256_sub_epi8(a.v[h], b.v[h])); }
// Per byte, as signed numbers: -1 where a > b, else 0.
INFER_SIMD I i_gt8(I a, I b) { INFER_EACH(I, _mm256_cmpgt_epi8(a.v[h], b.v[h])); }
// Lane i of a quarter is the sum of that quarter's lanes of a[i].
INFER_SIMD I i_sum_four(const I* a) {
  INFER_EACH(I, _mm256_hadd_epi32(_mm256_hadd_epi32(a[0].v[h], a[1].v[h]), _mm256_hadd_epi32(a[2].v[h], a[3].v[h])));
}
// Quarter i is the sum of the quarters of a[i].
INFER_SIMD I i_sum_quarters(const I* a) {
  const auto sum2 = [](const I& x, const I& y) INFER_LAMBDA {
    const __m256i p = _mm256_add_epi32(x.v[0], x.v[1]), q = _mm256_add_epi32(y.v[0], y.v[1]);
    return _mm256_add_epi32(_mm256_permute2x128_si256(p, q, 0x20), _mm256_permute2x128_si256(p, q, 0x31));
  };
  return {{sum2(a[0], a[1]), sum2(a[2], a[3])}};
}
// 32 bytes from p on, then 32 from q on.
INFER_SIMD I i_load_two(const void* p, const void* q) {
  return {{_mm256_loadu_si256(static_cast<const __m256i*>(p)), _mm256_loadu_si256(static_cast<const __m256i*>(q))}};
}
// Quarters 0 + 1 and 2 + 3 of a, then those of b.
INFER_SIMD I i_sum_halves(I a, I b) {
  const auto sum = [](const I& x) INFER_LAMBDA {
    return _mm256_add_epi32(_mm256_permute2x128_si256(x.v[0], x.v[1], 0x20),
                            _mm256_permute2x128_si256(x.v[0], x.v[1], 0x31));
  };
  return {{sum(a), sum(b)}};
}
// The same 8 bytes repeated.
INFER_SIMD I i_repeat8(const void* p) {
  int64_t bytes;
  __builtin_memcpy(&bytes, p, 8);
  INFER_EACH(I, _mm256_set1_epi64x(bytes));
}
// The low 16 bits of each lane of a, or'ed with b, whose low 16 bits are zero.
INFER_SIMD I i_join16(I a, I b) { INFER_EACH(I, _mm256_blend_epi16(a.v[h], b.v[h], 0xaa)); }
// The upper bytes of 16-bit values, as int16.
INFER_SIMD I i_widen_upper(I a) { INFER_EACH(I, _mm256_srai_epi16(a.v[h], 8)); }
// Eight vectors of eight 8-byte elements, transposed.
INFER_SIMD void i_interleave(I* a) {
  I b[8];
  for (int h = 0; h < 2; ++h) {
    for (int i = 0; i < 8; i += 4) {
      const __m256i l01 = _mm256_unpacklo_epi64(a[i].v[h], a[i + 1].v[h]);
      const __m256i h01 = _mm256_unpackhi_epi64(a[i].v[h], a[i + 1].v[h]);
      const __m256i l23 = _mm256_unpacklo_epi64(a[i + 2].v[h], a[i + 3].v[h]);
      const __m256i h23 = _mm256_unpackhi_epi64(a[i + 2].v[h], a[i + 3].v[h]);
      b[4 * h].v[i / 4] = _mm256_permute2x128_si256(l01, l23, 0x20);
      b[4 * h + 1].v[i / 4] = _mm256_permute2x128_si256(h01, h23, 0x20);
      b[4 * h + 2].v[i / 4] = _mm256_permute2x128_si256(l01, l23, 0x31);
      b[4 * h + 3].v[i / 4] = _mm256_permute2x128_si256(h01, h23, 0x31);
    }
  }
  for (int i = 0; i < 8; ++i) a[i] = b[i];
}
// For i < 8, a[i] becomes the sums of neighbouring lanes of a[2 i] and a[2 i + 1], alternating.
INFER_SIMD void i_sum_pairs(I* a) {
  for (int i = 0; i < 8; ++i) {
    for (int h = 0; h < 2; ++h) {
      const __m256i x = a[2 * i].v[h], y = a[2 * i + 1].v[h];
      a[i].v[h] = _mm256_add_epi32(_mm256_blend_epi32(x, _mm256_slli_epi64(y, 32), 0xaa),
                                   _mm256_blend_epi32(_mm256_srli_epi64(x, 32), y, 0xaa));
    }
  }
}

// ---- For codebooks.h ----

INFER_SIMD I i_xor3(I a, I b, I c) { return i_xor(i_xor(a, b), c); }
// (a & b) | c
INFER_SIMD I i_and_or(I a, I b, I c) { return i_or(i_and(a, b), c); }
// a | (b & ~c)
INFER_SIMD I i_or_andnot(I a, I b, I c) { INFER_EACH(I, _mm256_or_si256(a.v[h], _mm256_andnot_si256(c.v[h], b.v[h]))); }
// Even bytes of a, odd ones of b; even 32-bit words of a, odd ones of b.
INFER_SIMD I i_join8(I a, I b) {
  const __m256i even = _mm256_set1_epi32(0x00ff00ff);
  INFER_EACH(I, _mm256_or_si256(_mm256_and_si256(a.v[h], even), _mm256_andnot_si256(even, b.v[h])));
}
INFER_SIMD I i_join32(I a, I b) { INFER_EACH(I, _mm256_blend_epi32(a.v[h], b.v[h], 0xaa)); }
// 64-bit lanes.
template <int N>
INFER_SIMD I i_shr64(I a) {
  INFER_EACH(I, _mm256_srli_epi64(a.v[h], N));
}
template <int N>
INFER_SIMD I i_shl64(I a) {
  INFER_EACH(I, _mm256_slli_epi64(a.v[h], N));
}
// Products of 16-bit lanes: their low 16 bits, and, of unsigned lanes, their high 16 bits.
INFER_SIMD I i_mul16(I a, I b) { INFER_EACH(I, _mm256_mullo_epi16(a.v[h], b.v[h])); }
INFER_SIMD I i_mul16_high(I a, I b) { INFER_EACH(I, _mm256_mulhi_epu16(a.v[h], b.v[h])); }
// 32 bytes, and 16 words of 16 bits, zero-extended; eight words of 32 bits, each twice.
INFER_SIMD I i_load_u8(const uint8_t* p) {
  INFER_EACH(I, _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16 * h))));
}
INFER_SIMD I i_load_u16(const uint8_t* p) {
  INFER_EACH(I, _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16 * h))));
}
INFER_SIMD I i_load_words_twice(const uint8_t* p) {
  const __m256i order = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
  INFER_EACH(I, _mm256_permutevar8x32_epi32(
                    _mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16 * h))), order));
}
// The same 16 bytes in all quarters.
INFER_SIMD I i_repeat16(const uint8_t* p) {
  INFER_EACH(I, _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
// In each quarter, the bytes of a at the indices `order`; 128 gives zero.
INFER_SIMD I i_pick(I a, I order) { INFER_EACH(I, _mm256_shuffle_epi8(a.v[h], order.v[h])); }
// Means of unsigned bytes, rounded up.
INFER_SIMD I i_mean8(I a, I b) { INFER_EACH(I, _mm256_avg_epu8(a.v[h], b.v[h])); }
// Bytes to be negated: where a & bits is not zero, `bits` having one bit in each byte.
struct Signs {
  __m256i v[2];  // 1 or -1
};
INFER_SIMD Signs i_signs(I a, I bits) {
  INFER_EACH(Signs,
             _mm256_or_si256(_mm256_cmpeq_epi8(_mm256_and_si256(a.v[h], bits.v[h]), bits.v[h]), _mm256_set1_epi8(1)));
}
INFER_SIMD I i_negate(I x, Signs signs) { INFER_EACH(I, _mm256_sign_epi8(x.v[h], signs.v[h])); }
// Entries of a table whose indices are fields of kBits: field J of each 64-bit lane, or of each 32-bit lane.
struct Fields {
  alignas(64) uint8_t bytes[64];
  template <int kLane, int J, int kBits>
  INFER_SIMD size_t field(int lane) const {
    static_assert(kBits == 8 || kBits == 16);
    const uint8_t* p = bytes + kLane * lane + J * kBits / 8;
    uint16_t x;
    __builtin_memcpy(&x, p, 2);
    return kBits == 8 ? *p : x;
  }
};
INFER_SIMD Fields i_fields(I a) {
  Fields f;
  i_store(f.bytes, a);
  return f;
}
template <int J, int kBits>
INFER_SIMD I i_entries8(const uint64_t* table, const Fields& fields) {
  const auto entry = [&](int i) INFER_LAMBDA { return static_cast<int64_t>(table[fields.field<8, J, kBits>(i)]); };
  INFER_EACH(I, _mm256_setr_epi64x(entry(4 * h), entry(4 * h + 1), entry(4 * h + 2), entry(4 * h + 3)));
}
template <int J, int kBits>
INFER_SIMD I i_entries4(const uint32_t* table, const Fields& fields) {
  const auto entry = [&](int i) INFER_LAMBDA { return static_cast<int32_t>(table[fields.field<4, J, kBits>(i)]); };
  INFER_EACH(I, _mm256_setr_epi32(entry(8 * h), entry(8 * h + 1), entry(8 * h + 2), entry(8 * h + 3), entry(8 * h + 4),
                                  entry(8 * h + 5), entry(8 * h + 6), entry(8 * h + 7)));
}

#ifdef __AVXVNNI__
INFER_SIMD I i_madd16(I acc, I a, I b) { INFER_EACH(I, _mm256_dpwssd_avx_epi32(acc.v[h], a.v[h], b.v[h])); }
constexpr bool kAnyUnsigned = true;  // i_dot_u8 takes all unsigned bytes, not only those up to 127
constexpr int kSignedOffset = 128;
INFER_SIMD I i_dot_u8(I acc, I w, I x) { INFER_EACH(I, _mm256_dpbusd_avx_epi32(acc.v[h], w.v[h], x.v[h])); }
INFER_SIMD I i_prepare_s8(I w) { INFER_EACH(I, _mm256_xor_si256(w.v[h], _mm256_set1_epi8(-128))); }
INFER_SIMD I i_dot_s8(I acc, I w, I x) { return i_dot_u8(acc, w, x); }
#else
INFER_SIMD I i_madd16(I acc, I a, I b) { INFER_EACH(I, _mm256_add_epi32(acc.v[h], _mm256_madd_epi16(a.v[h], b.v[h]))); }
constexpr bool kAnyUnsigned = false;
constexpr int kSignedOffset = 0;
INFER_SIMD I i_dot_u8(I acc, I w, I x) {
  INFER_EACH(I,
             _mm256_add_epi32(acc.v[h], _mm256_madd_epi16(_mm256_maddubs_epi16(w.v[h], x.v[h]), _mm256_set1_epi16(1))));
}
INFER_SIMD I i_prepare_s8(I w) { return w; }
INFER_SIMD I i_dot_s8(I acc, I w, I x) {
  INFER_EACH(I, _mm256_add_epi32(acc.v[h], _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_abs_epi8(w.v[h]),
                                                                                  _mm256_sign_epi8(x.v[h], w.v[h])),
                                                             _mm256_set1_epi16(1))));
}
#endif

INFER_SIMD void i_transpose(const uint8_t* p, size_t stride, I out[4]) {
  for (int h = 0; h < 2; ++h) {
    __m256i a[4];
    for (int i = 0; i < 4; ++i) {
      const uint8_t* row = p + (8 * h + i) * stride;
      a[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row))),
                                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + 4 * stride)), 1);
    }
    const __m256i l01 = _mm256_unpacklo_epi32(a[0], a[1]), h01 = _mm256_unpackhi_epi32(a[0], a[1]);
    const __m256i l23 = _mm256_unpacklo_epi32(a[2], a[3]), h23 = _mm256_unpackhi_epi32(a[2], a[3]);
    out[0].v[h] = _mm256_unpacklo_epi64(l01, l23);
    out[1].v[h] = _mm256_unpackhi_epi64(l01, l23);
    out[2].v[h] = _mm256_unpacklo_epi64(h01, h23);
    out[3].v[h] = _mm256_unpackhi_epi64(h01, h23);
  }
}
INFER_SIMD F f_from_f16_lanes(I a) {
  const __m256i low = _mm256_set1_epi32(0xffff);
  F r;
  for (int h = 0; h < 2; ++h) {
    const __m256i x = _mm256_and_si256(a.v[h], low);
    r.v[h] = _mm256_cvtph_ps(_mm_packus_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1)));
  }
  return r;
}
// The most tokens for which gemm_in_order.h is faster: for Q4_K and Q5_K, and for Q6_K.
constexpr int kInOrderTokens = 1, kInOrderTokensQ6 = 1;
constexpr InOrder kInOrderQ8 = InOrder::kDefault;
#ifdef __AVXVNNI__
constexpr bool kPairSums = false;
constexpr bool kTokenLanes = false;
#else
// There is no byte dot product into 32 bits; products of unsigned by signed bytes are added in pairs, in 16 bits.
constexpr bool kPairSums = true;
constexpr bool kTokenLanes = false;
#endif
INFER_SIMD I i_pair_sums(I w, I x) { INFER_EACH(I, _mm256_maddubs_epi16(w.v[h], x.v[h])); }
INFER_SIMD I i_add16(I a, I b) { INFER_EACH(I, _mm256_add_epi16(a.v[h], b.v[h])); }
constexpr bool kNarrowPays = true;  // scaling sums as int16 where they fit is faster (kMayBeNarrow)
constexpr int kRowTile = 1;
#ifdef __AVXVNNI__
constexpr int kTokenTile = 4;
#else
constexpr int kTokenTile = 2;
#endif
constexpr int kFewTokens = 4;  // the most tokens for which gemm_few.h is faster than gemm.h
constexpr int kFloatRows = 2, kFloatTokens = 2, kFloatFewTokens = 2;
constexpr int kQueryTile = 4;
constexpr int kTileVectors = 1;  // of 16 scores or dimensions that a tile of queries computes at once
constexpr int kProbeChains = 6;  // enough to cover the latency, few enough for the registers
INFER_SIMD void keep_in_register(I& a) { asm volatile("" : "+x"(a.v[0]), "+x"(a.v[1])); }
INFER_SIMD void keep_in_register(F& a) { asm volatile("" : "+x"(a.v[0]), "+x"(a.v[1])); }
#undef INFER_EACH
