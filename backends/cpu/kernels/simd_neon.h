// Sixteen lanes on NEON: four registers. Included by kernels_neon.cpp, kernels_dotprod.cpp and kernels_i8mm.cpp inside
// their anonymous namespace; simd_scalar.h defines the functions common to all levels.
#define INFER_SIMD inline __attribute__((always_inline))
#define INFER_OUTLINE __attribute__((noinline))
#define INFER_MATH INFER_SIMD  // exp() and the like

#define INFER_LAMBDA __attribute__((always_inline))

struct F {
  float32x4_t v[4];
};
struct I {
  int32x4_t v[4];
};
// The body of a function that computes the expression for each register h of its result.
#define INFER_EACH(type, expression)               \
  type r;                                          \
  for (int h = 0; h < 4; ++h) r.v[h] = expression; \
  return r

INFER_SIMD F f_zero() { INFER_EACH(F, vdupq_n_f32(0)); }
INFER_SIMD F f_set1(float x) { INFER_EACH(F, vdupq_n_f32(x)); }
INFER_SIMD F f_load(const float* p) { INFER_EACH(F, vld1q_f32(p + 4 * h)); }
INFER_SIMD
void f_store(float* p, F a) {
  for (int h = 0; h < 4; ++h) vst1q_f32(p + 4 * h, a.v[h]);
}
INFER_SIMD F f_load_first(const float* p, int n) {
  float t[16] = {};
  for (int i = 0; i < n; ++i) t[i] = p[i];
  return f_load(t);
}
INFER_SIMD void f_store_first(float* p, F a, int n) {
  float t[16];
  f_store(t, a);
  for (int i = 0; i < n; ++i) p[i] = t[i];
}
INFER_SIMD F f_add(F a, F b) { INFER_EACH(F, vaddq_f32(a.v[h], b.v[h])); }
INFER_SIMD F f_sub(F a, F b) { INFER_EACH(F, vsubq_f32(a.v[h], b.v[h])); }
INFER_SIMD F f_mul(F a, F b) { INFER_EACH(F, vmulq_f32(a.v[h], b.v[h])); }
INFER_SIMD F f_div(F a, F b) { INFER_EACH(F, vdivq_f32(a.v[h], b.v[h])); }
INFER_SIMD F f_fma(F a, F b, F c) { INFER_EACH(F, vfmaq_f32(c.v[h], a.v[h], b.v[h])); }
INFER_SIMD F f_fnma(F a, F b, F c) { INFER_EACH(F, vfmsq_f32(c.v[h], a.v[h], b.v[h])); }
INFER_SIMD F f_max(F a, F b) { INFER_EACH(F, vbslq_f32(vcgtq_f32(a.v[h], b.v[h]), a.v[h], b.v[h])); }
INFER_SIMD F f_min(F a, F b) { INFER_EACH(F, vbslq_f32(vcltq_f32(a.v[h], b.v[h]), a.v[h], b.v[h])); }
INFER_SIMD F f_from_int(I a) { INFER_EACH(F, vcvtq_f32_s32(a.v[h])); }
INFER_SIMD I f_round_to_int(F a) { INFER_EACH(I, vcvtnq_s32_f32(a.v[h])); }
INFER_SIMD I f_bits(F a) { INFER_EACH(I, vreinterpretq_s32_f32(a.v[h])); }
INFER_SIMD F f_from_bits(I a) { INFER_EACH(F, vreinterpretq_f32_s32(a.v[h])); }
INFER_SIMD F f_select_less(F a, F b, F yes, F no) {
  INFER_EACH(F, vbslq_f32(vcltq_f32(a.v[h], b.v[h]), yes.v[h], no.v[h]));
}
INFER_SIMD F f_load_f16(const uint16_t* p) { INFER_EACH(F, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p + 4 * h)))); }
INFER_SIMD
void f_store_f16(uint16_t* p, F a) {
  for (int h = 0; h < 4; ++h) vst1_u16(p + 4 * h, vreinterpret_u16_f16(vcvt_f16_f32(a.v[h])));
}
INFER_SIMD F f_load_bf16(const uint16_t* p) {
  INFER_EACH(F, vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(vld1_u16(p + 4 * h)), 16)));
}
INFER_SIMD
float f_reduce_add(F a) {
  const float32x4_t r4 = vaddq_f32(vaddq_f32(a.v[0], a.v[2]), vaddq_f32(a.v[1], a.v[3]));
  const float32x2_t r2 = vadd_f32(vget_low_f32(r4), vget_high_f32(r4));
  return vget_lane_f32(r2, 0) + vget_lane_f32(r2, 1);
}

INFER_SIMD I i_zero() { INFER_EACH(I, vdupq_n_s32(0)); }
INFER_SIMD I i_set1(int32_t x) { INFER_EACH(I, vdupq_n_s32(x)); }
INFER_SIMD I i_load(const void* p) { INFER_EACH(I, vld1q_s32(static_cast<const int32_t*>(p) + 4 * h)); }
// 16 int16 values.
INFER_SIMD I i_load_s16(const int16_t* p) { INFER_EACH(I, vmovl_s16(vld1_s16(p + 4 * h))); }
INFER_SIMD void i_store(void* p, I a) {
  for (int h = 0; h < 4; ++h) vst1q_s32(static_cast<int32_t*>(p) + 4 * h, a.v[h]);
}
INFER_SIMD I i_add(I a, I b) { INFER_EACH(I, vaddq_s32(a.v[h], b.v[h])); }
INFER_SIMD I i_sub(I a, I b) { INFER_EACH(I, vsubq_s32(a.v[h], b.v[h])); }
INFER_SIMD I i_mul(I a, I b) { INFER_EACH(I, vmulq_s32(a.v[h], b.v[h])); }
INFER_SIMD I i_max(I a, I b) { INFER_EACH(I, vmaxq_s32(a.v[h], b.v[h])); }
INFER_SIMD I i_and(I a, I b) { INFER_EACH(I, vandq_s32(a.v[h], b.v[h])); }
INFER_SIMD I i_or(I a, I b) { INFER_EACH(I, vorrq_s32(a.v[h], b.v[h])); }
INFER_SIMD I i_xor(I a, I b) { INFER_EACH(I, veorq_s32(a.v[h], b.v[h])); }
template <int N>
INFER_SIMD I i_shl(I a) {
  INFER_EACH(I, vshlq_n_s32(a.v[h], N));
}
template <int N>
INFER_SIMD I i_shr(I a) {
  if constexpr (N == 0) return a;
  else {
    INFER_EACH(I, vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(a.v[h]), N)));
  }
}
template <int N>
INFER_SIMD I i_sar(I a) {
  if constexpr (N == 0) return a;
  else {
    INFER_EACH(I, vshrq_n_s32(a.v[h], N));
  }
}
INFER_SIMD void i_store_s8(int8_t* p, I a) {
  const int16x8_t low = vcombine_s16(vmovn_s32(a.v[0]), vmovn_s32(a.v[1]));
  const int16x8_t high = vcombine_s16(vmovn_s32(a.v[2]), vmovn_s32(a.v[3]));
  vst1q_s8(p, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
}
INFER_SIMD int32_t i_reduce_max(I a) {
  return vmaxvq_s32(vmaxq_s32(vmaxq_s32(a.v[0], a.v[1]), vmaxq_s32(a.v[2], a.v[3])));
}
INFER_SIMD int32_t i_reduce_add(I a) {
  return vaddvq_s32(vaddq_s32(vaddq_s32(a.v[0], a.v[1]), vaddq_s32(a.v[2], a.v[3])));
}
INFER_SIMD I i_lookup(const int8_t* table, I a) {
  INFER_EACH(I, vreinterpretq_s32_s8(vqtbl1q_s8(vld1q_s8(table), vreinterpretq_u8_s32(a.v[h]))));
}
template <int A, int B, int C, int D>
INFER_SIMD I i_bytes(I a) {
  constexpr uint32_t kBase = 0;
  const uint32_t pick = (A & 255u) | (B & 255u) << 8 | (C & 255u) << 16 | (D & 255u) << 24;
  const uint32_t lanes[4] = {kBase, 0x04040404u, 0x08080808u, 0x0c0c0c0cu};
  const uint8x16_t order = vorrq_u8(vreinterpretq_u8_u32(vld1q_u32(lanes)), vreinterpretq_u8_u32(vdupq_n_u32(pick)));
  { INFER_EACH(I, vreinterpretq_s32_u8(vqtbl1q_u8(vreinterpretq_u8_s32(a.v[h]), order))); }
}
INFER_SIMD int32x4_t madd16_4(int32x4_t a, int32x4_t b) {
  const int16x8_t x = vreinterpretq_s16_s32(a), y = vreinterpretq_s16_s32(b);
  return vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y));
}
INFER_SIMD I i_madd16(I acc, I a, I b) { INFER_EACH(I, vaddq_s32(acc.v[h], madd16_4(a.v[h], b.v[h]))); }

constexpr bool kAnyUnsigned = false;  // i_dot_u8 takes unsigned bytes up to 127
constexpr int kSignedOffset = 0;
#if defined(__ARM_FEATURE_DOTPROD)
INFER_SIMD I i_dot_s8(I acc, I w, I x) {
  INFER_EACH(I, vdotq_s32(acc.v[h], vreinterpretq_s8_s32(w.v[h]), vreinterpretq_s8_s32(x.v[h])));
}

#else
INFER_SIMD int32x4_t dot_4(int32x4_t w, int32x4_t x) {
  const int8x16_t a = vreinterpretq_s8_s32(w), b = vreinterpretq_s8_s32(x);
  const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(a), vget_low_s8(b)));
  const int32x4_t high = vpaddlq_s16(vmull_high_s8(a, b));
  return vpaddq_s32(low, high);
}
INFER_SIMD I i_dot_s8(I acc, I w, I x) { INFER_EACH(I, vaddq_s32(acc.v[h], dot_4(w.v[h], x.v[h]))); }

#endif
#if defined(__ARM_FEATURE_MATMUL_INT8)
INFER_SIMD I i_dot_u8(I acc, I w, I x) {
  INFER_EACH(I, vusdotq_s32(acc.v[h], vreinterpretq_u8_s32(w.v[h]), vreinterpretq_s8_s32(x.v[h])));
}

#else
// Unsigned codes never exceed 127 here, so they can be read as signed.
INFER_SIMD I i_dot_u8(I acc, I w, I x) { return i_dot_s8(acc, w, x); }
#endif
INFER_SIMD I i_prepare_s8(I w) { return w; }

INFER_SIMD void i_transpose(const uint8_t* p, size_t stride, I out[4]) {
  for (int h = 0; h < 4; ++h) {
    int32x4_t a[4];
    for (int i = 0; i < 4; ++i) a[i] = vreinterpretq_s32_u8(vld1q_u8(p + (4 * h + i) * stride));
    const int64x2_t l01 = vreinterpretq_s64_s32(vzip1q_s32(a[0], a[1])),
                    h01 = vreinterpretq_s64_s32(vzip2q_s32(a[0], a[1]));
    const int64x2_t l23 = vreinterpretq_s64_s32(vzip1q_s32(a[2], a[3])),
                    h23 = vreinterpretq_s64_s32(vzip2q_s32(a[2], a[3]));
    out[0].v[h] = vreinterpretq_s32_s64(vzip1q_s64(l01, l23));
    out[1].v[h] = vreinterpretq_s32_s64(vzip2q_s64(l01, l23));
    out[2].v[h] = vreinterpretq_s32_s64(vzip1q_s64(h01, h23));
    out[3].v[h] = vreinterpretq_s32_s64(vzip2q_s64(h01, h23));
  }
}
INFER_SIMD F f_from_f16_lanes(I a) {
  INFER_EACH(F, vcvt_f32_f16(vreinterpret_f16_u16(vmovn_u32(vreinterpretq_u32_s32(a.v[h])))));
}

// The same 32 bytes in both halves.
INFER_SIMD I i_load_twice(const void* p) {
  INFER_EACH(I, vld1q_s32(reinterpret_cast<const int32_t*>(static_cast<const uint8_t*>(p) + 16 * (h % 2))));
}
// Shifts lanes 8..15 only.
template <int N>
INFER_SIMD I i_shr_second(I a) {
  for (int h = 2; h < 4; ++h) a.v[h] = vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(a.v[h]), N));
  return a;
}
// lanes[i] is lane i of a, then of b.
INFER_SIMD void i_store_pairs(int32_t (*lanes)[2], I a, I b) {
  for (int h = 0; h < 4; ++h) vst2q_s32(&lanes[4 * h][0], {{a.v[h], b.v[h]}});
}
// Packs to int16 with saturation: each quarter gets the four lanes of a, then those of b.
INFER_SIMD I i_pack16(I a, I b) {
  INFER_EACH(I, vreinterpretq_s32_s16(vcombine_s16(vqmovn_s32(a.v[h]), vqmovn_s32(b.v[h]))));
}
INFER_SIMD int32x4_t four_and_four(int a, int b) {
  return vreinterpretq_s32_s16(vcombine_s16(vdup_n_s16(static_cast<int16_t>(a)), vdup_n_s16(static_cast<int16_t>(b))));
}
// The unsigned bytes of x as int16, each repeated four times: bytes 0, 1 in quarters 0 and 1, bytes 2, 3 in 2 and 3.
INFER_SIMD I i_spread_four(int32_t x) {
  INFER_EACH(I, four_and_four(x >> 16 * (h / 2) & 255, x >> (16 * (h / 2) + 8) & 255));
}
// Eight signed bytes as int16, each repeated four times: bytes i and 4 + i in quarter i.
INFER_SIMD I i_spread_eight(const uint8_t* p) {
  INFER_EACH(I, four_and_four(static_cast<int8_t>(p[h]), static_cast<int8_t>(p[4 + h])));
}
INFER_SIMD I i_abs8(I a) { INFER_EACH(I, vreinterpretq_s32_s8(vabsq_s8(vreinterpretq_s8_s32(a.v[h])))); }
INFER_SIMD I i_add8(I a, I b) {
  INFER_EACH(I, vreinterpretq_s32_s8(vaddq_s8(vreinterpretq_s8_s32(a.v[h]), vreinterpretq_s8_s32(b.v[h]))));
}
INFER_SIMD I i_sub8(I a, I b) {
  INFER_EACH(I, vreinterpretq_s32_s8(vsubq_s8(vreinterpretq_s8_s32(a.v[h]), vreinterpretq_s8_s32(b.v[h]))));
}
// Per byte, as signed numbers: -1 where a > b, else 0.
INFER_SIMD I i_gt8(I a, I b) {
  INFER_EACH(I, vreinterpretq_s32_u8(vcgtq_s8(vreinterpretq_s8_s32(a.v[h]), vreinterpretq_s8_s32(b.v[h]))));
}
// Lane i of a quarter is the sum of that quarter's lanes of a[i].
INFER_SIMD I i_sum_four(const I* a) {
  INFER_EACH(I, vpaddq_s32(vpaddq_s32(a[0].v[h], a[1].v[h]), vpaddq_s32(a[2].v[h], a[3].v[h])));
}
// 32 bytes from p on, then 32 from q on.
INFER_SIMD I i_load_two(const void* p, const void* q) {
  const auto *a = static_cast<const uint8_t*>(p), *b = static_cast<const uint8_t*>(q);
  return {{vreinterpretq_s32_u8(vld1q_u8(a)), vreinterpretq_s32_u8(vld1q_u8(a + 16)), vreinterpretq_s32_u8(vld1q_u8(b)),
           vreinterpretq_s32_u8(vld1q_u8(b + 16))}};
}
// Quarters 0 + 1 and 2 + 3 of a, then those of b.
INFER_SIMD I i_sum_halves(I a, I b) {
  return {{vaddq_s32(a.v[0], a.v[1]), vaddq_s32(a.v[2], a.v[3]), vaddq_s32(b.v[0], b.v[1]), vaddq_s32(b.v[2], b.v[3])}};
}
// The same 8 bytes repeated.
INFER_SIMD I i_repeat8(const void* p) {
  INFER_EACH(I, vreinterpretq_s32_u8(
                    vcombine_u8(vld1_u8(static_cast<const uint8_t*>(p)), vld1_u8(static_cast<const uint8_t*>(p)))));
}
// The low 16 bits of each lane of a, or'ed with b, whose low 16 bits are zero.
INFER_SIMD I i_join16(I a, I b) { INFER_EACH(I, vbslq_s32(vdupq_n_u32(0xffff), a.v[h], b.v[h])); }
// The upper bytes of 16-bit values, as int16.
INFER_SIMD I i_widen_upper(I a) { INFER_EACH(I, vreinterpretq_s32_s16(vshrq_n_s16(vreinterpretq_s16_s32(a.v[h]), 8))); }
// Eight vectors of eight 8-byte elements, transposed.
INFER_SIMD void i_interleave(I* a) {
  I b[8];
  for (int h = 0; h < 4; ++h) {
    for (int i = 0; i < 8; i += 2) {
      const int64x2_t x = vreinterpretq_s64_s32(a[i].v[h]), y = vreinterpretq_s64_s32(a[i + 1].v[h]);
      b[2 * h].v[i / 2] = vreinterpretq_s32_s64(vzip1q_s64(x, y));
      b[2 * h + 1].v[i / 2] = vreinterpretq_s32_s64(vzip2q_s64(x, y));
    }
  }
  for (int i = 0; i < 8; ++i) a[i] = b[i];
}
// For i < 8, a[i] becomes the sums of neighbouring lanes of a[2 i] and a[2 i + 1], alternating.
INFER_SIMD void i_sum_pairs(I* a) {
  for (int i = 0; i < 8; ++i) {
    const I x = a[2 * i], y = a[2 * i + 1];
    for (int h = 0; h < 4; ++h) a[i].v[h] = vaddq_s32(vtrn1q_s32(x.v[h], y.v[h]), vtrn2q_s32(x.v[h], y.v[h]));
  }
}
// Products of unsigned bytes up to 127 and signed ones, added in pairs, in 16 bits; and sums of such pairs.
INFER_SIMD int32x4_t pair_sums(int8x16_t w, int8x16_t x) {
  return vreinterpretq_s32_s16(vpaddq_s16(vmull_s8(vget_low_s8(w), vget_low_s8(x)), vmull_high_s8(w, x)));
}
INFER_SIMD I i_pair_sums(I w, I x) {
  INFER_EACH(I, pair_sums(vreinterpretq_s8_s32(w.v[h]), vreinterpretq_s8_s32(x.v[h])));
}
INFER_SIMD I i_add16(I a, I b) {
  INFER_EACH(I, vreinterpretq_s32_s16(vaddq_s16(vreinterpretq_s16_s32(a.v[h]), vreinterpretq_s16_s32(b.v[h]))));
}

// ---- For codebooks.h ----

INFER_SIMD uint8x16_t as_u8(int32x4_t a) { return vreinterpretq_u8_s32(a); }
INFER_SIMD uint16x8_t as_u16(int32x4_t a) { return vreinterpretq_u16_s32(a); }
INFER_SIMD I i_xor3(I a, I b, I c) { return i_xor(i_xor(a, b), c); }
// (a & b) | c
INFER_SIMD I i_and_or(I a, I b, I c) { return i_or(i_and(a, b), c); }
// a | (b & ~c)
INFER_SIMD I i_or_andnot(I a, I b, I c) { INFER_EACH(I, vorrq_s32(a.v[h], vbicq_s32(b.v[h], c.v[h]))); }
// Even bytes of a, odd ones of b; even 32-bit words of a, odd ones of b.
INFER_SIMD I i_join8(I a, I b) {
  const uint8x16_t even = vreinterpretq_u8_u16(vdupq_n_u16(0x00ff));
  INFER_EACH(I, vreinterpretq_s32_u8(vbslq_u8(even, as_u8(a.v[h]), as_u8(b.v[h]))));
}
INFER_SIMD I i_join32(I a, I b) {
  INFER_EACH(I, vbslq_s32(vreinterpretq_u32_u64(vdupq_n_u64(0xffffffffu)), a.v[h], b.v[h]));
}
// 64-bit lanes.
template <int N>
INFER_SIMD I i_shr64(I a) {
  if constexpr (N != 0) {
    INFER_EACH(I, vreinterpretq_s32_u64(vshrq_n_u64(vreinterpretq_u64_s32(a.v[h]), N)));
  } else {
    return a;
  }
}
template <int N>
INFER_SIMD I i_shl64(I a) {
  INFER_EACH(I, vreinterpretq_s32_u64(vshlq_n_u64(vreinterpretq_u64_s32(a.v[h]), N)));
}
// Products of 16-bit lanes: their low 16 bits, and, of unsigned lanes, their high 16 bits.
INFER_SIMD I i_mul16(I a, I b) { INFER_EACH(I, vreinterpretq_s32_u16(vmulq_u16(as_u16(a.v[h]), as_u16(b.v[h])))); }
INFER_SIMD int32x4_t mul16_high(uint16x8_t x, uint16x8_t y) {
  return vreinterpretq_s32_u16(vuzp2q_u16(vreinterpretq_u16_u32(vmull_u16(vget_low_u16(x), vget_low_u16(y))),
                                          vreinterpretq_u16_u32(vmull_high_u16(x, y))));
}
INFER_SIMD I i_mul16_high(I a, I b) { INFER_EACH(I, mul16_high(as_u16(a.v[h]), as_u16(b.v[h]))); }
// 32 bytes, and 16 words of 16 bits, zero-extended; eight words of 32 bits, each twice.
INFER_SIMD I i_load_u8(const uint8_t* p) { INFER_EACH(I, vreinterpretq_s32_u16(vmovl_u8(vld1_u8(p + 8 * h)))); }
INFER_SIMD I i_load_u16(const uint8_t* p) {
  INFER_EACH(I, vreinterpretq_s32_u32(vmovl_u16(vreinterpret_u16_u8(vld1_u8(p + 8 * h)))));
}
INFER_SIMD int32x4_t two_words_twice(const uint8_t* p) {
  const int32x2_t words = vreinterpret_s32_u8(vld1_u8(p));
  return vcombine_s32(vdup_lane_s32(words, 0), vdup_lane_s32(words, 1));
}
INFER_SIMD I i_load_words_twice(const uint8_t* p) { INFER_EACH(I, two_words_twice(p + 8 * h)); }
// The same 16 bytes in all quarters.
INFER_SIMD I i_repeat16(const uint8_t* p) {
  const int32x4_t a = vreinterpretq_s32_u8(vld1q_u8(p));
  return {{a, a, a, a}};
}
// In each quarter, the bytes of a at the indices `order`; 128 gives zero.
INFER_SIMD I i_pick(I a, I order) { INFER_EACH(I, vreinterpretq_s32_u8(vqtbl1q_u8(as_u8(a.v[h]), as_u8(order.v[h])))); }
// Means of unsigned bytes, rounded up.
INFER_SIMD I i_mean8(I a, I b) { INFER_EACH(I, vreinterpretq_s32_u8(vrhaddq_u8(as_u8(a.v[h]), as_u8(b.v[h])))); }
// Bytes to be negated: where a & bits is not zero, `bits` having one bit in each byte.
struct Signs {
  I v;  // -1 there
};
INFER_SIMD I where_set(I a, I bits) { INFER_EACH(I, vreinterpretq_s32_u8(vtstq_u8(as_u8(a.v[h]), as_u8(bits.v[h])))); }
INFER_SIMD Signs i_signs(I a, I bits) { return {where_set(a, bits)}; }
INFER_SIMD I i_negate(I x, Signs signs) { return i_sub8(i_xor(x, signs.v), signs.v); }
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
  const auto entry = [&](int i) INFER_LAMBDA { return vcreate_u64(table[fields.field<8, J, kBits>(i)]); };
  INFER_EACH(I, vreinterpretq_s32_u64(vcombine_u64(entry(2 * h), entry(2 * h + 1))));
}
template <int J, int kBits>
INFER_SIMD I i_entries4(const uint32_t* table, const Fields& fields) {
  const auto two = [&](int i) INFER_LAMBDA {
    return vcreate_u64(table[fields.field<4, J, kBits>(i)] |
                       static_cast<uint64_t>(table[fields.field<4, J, kBits>(i + 1)]) << 32);
  };
  INFER_EACH(I, vreinterpretq_s32_u64(vcombine_u64(two(4 * h), two(4 * h + 2))));
}

// Quarter i is the sum of the quarters of a[i].
INFER_SIMD I i_sum_quarters(const I* a) {
  INFER_EACH(I, vaddq_s32(vaddq_s32(a[h].v[0], a[h].v[1]), vaddq_s32(a[h].v[2], a[h].v[3])));
}
#undef INFER_EACH

// The most tokens for which gemm_in_order.h is faster: for Q4_K and Q5_K, and for Q6_K.
constexpr int kInOrderTokens = 1, kInOrderTokensQ6 = 1;
constexpr InOrder kInOrderQ8 = InOrder::kNever;
constexpr bool kTokenLanes = false;
constexpr bool kPairSums = false;
constexpr bool kNarrowPays = false;  // scaling sums as int16 where they fit is faster (kMayBeNarrow)
constexpr int kRowTile = 1;
constexpr int kTokenTile = 4;
constexpr int kFewTokens = 4;  // the most tokens for which gemm_few.h is faster than gemm.h
constexpr int kFloatRows = 2, kFloatTokens = 2, kFloatFewTokens = 2;
constexpr int kQueryTile = 4;
constexpr int kTileVectors = 1;  // of 16 scores or dimensions that a tile of queries computes at once
constexpr int kProbeChains = 4;  // enough to cover the latency, few enough for the registers
INFER_SIMD void keep_in_register(I& a) {
  for (int32x4_t& v : a.v) asm volatile("" : "+w"(v));
}
INFER_SIMD void keep_in_register(F& a) {
  for (float32x4_t& v : a.v) asm volatile("" : "+w"(v));
}
