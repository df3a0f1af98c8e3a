// Sixteen lanes in plain code, the definition of the functions that all SIMD headers have. F holds 16 floats, I 16
// int32 whose bytes may be read as 64 int8 or 32 int16. Included inside an anonymous namespace.
#define INFER_SIMD inline __attribute__((always_inline))
#define INFER_OUTLINE __attribute__((noinline))
// Without instructions for it, fmaf() is a call, so long functions are not worth copying into their callers.
#define INFER_MATH inline __attribute__((noinline))
#define INFER_LAMBDA

struct F {
  float v[16];
};
struct I {
  int32_t v[16];
};
// The body of a function that computes the expression for each lane i of its result.
#define INFER_EACH(type, expression)                \
  type r;                                           \
  for (int i = 0; i < 16; ++i) r.v[i] = expression; \
  return r

INFER_SIMD uint32_t float_bits(float x) { return __builtin_bit_cast(uint32_t, x); }
INFER_SIMD float bits_float(uint32_t x) { return __builtin_bit_cast(float, x); }
INFER_SIMD float half_to_float(uint16_t x) {
  const uint32_t sign = static_cast<uint32_t>(x & 0x8000u) << 16, rest = x & 0x7fffu;
  if (rest >= 0x7c00u) return bits_float(sign | 0x7f800000u | (rest & 0x3ffu) << 13 | (rest > 0x7c00u ? 0x400000u : 0));
  if (rest >= 0x400u) return bits_float(sign | ((rest << 13) + 0x38000000u));
  const float magnitude = static_cast<float>(rest) * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}
INFER_SIMD uint16_t float_to_half(float x) {
  const uint32_t bits = float_bits(x), sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | (rest >> 13 & 0x3ffu));
  if (rest >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (rest < 0x38800000u) {  // denormal or zero: adding 0.5 rounds at the right bit
    return static_cast<uint16_t>(sign | (float_bits(bits_float(rest) + 0.5f) - 0x3f000000u));
  }
  return static_cast<uint16_t>(sign | ((rest - 0x38000000u + 0xfffu + (rest >> 13 & 1)) >> 13));
}

INFER_SIMD F f_zero() { INFER_EACH(F, 0.0f); }
INFER_SIMD F f_set1(float x) { INFER_EACH(F, x); }
INFER_SIMD F f_load(const float* p) { INFER_EACH(F, p[i]); }
INFER_SIMD void f_store(float* p, F a) {
  for (int i = 0; i < 16; ++i) p[i] = a.v[i];
}
// Lanes from n on are +0 and their memory is not touched; 0 <= n <= 16.
INFER_SIMD F f_load_first(const float* p, int n) { INFER_EACH(F, i < n ? p[i] : 0.0f); }
INFER_SIMD
void f_store_first(float* p, F a, int n) {
  for (int i = 0; i < n; ++i) p[i] = a.v[i];
}
INFER_SIMD F f_add(F a, F b) { INFER_EACH(F, a.v[i] + b.v[i]); }
INFER_SIMD F f_sub(F a, F b) { INFER_EACH(F, a.v[i] - b.v[i]); }
INFER_SIMD F f_mul(F a, F b) { INFER_EACH(F, a.v[i] * b.v[i]); }
INFER_SIMD F f_div(F a, F b) { INFER_EACH(F, a.v[i] / b.v[i]); }
// a * b + c, one rounding
INFER_MATH F f_fma(F a, F b, F c) { INFER_EACH(F, __builtin_fmaf(a.v[i], b.v[i], c.v[i])); }
// c - a * b, one rounding
INFER_MATH F f_fnma(F a, F b, F c) { INFER_EACH(F, __builtin_fmaf(-a.v[i], b.v[i], c.v[i])); }
// f_max and f_min: b where either is NaN.
INFER_SIMD F f_max(F a, F b) { INFER_EACH(F, a.v[i] > b.v[i] ? a.v[i] : b.v[i]); }
INFER_SIMD F f_min(F a, F b) { INFER_EACH(F, a.v[i] < b.v[i] ? a.v[i] : b.v[i]); }
INFER_SIMD F f_from_int(I a) { INFER_EACH(F, static_cast<float>(a.v[i])); }

// To nearest even; REQUIRES |x| < 2^22.
INFER_SIMD I f_round_to_int(F a) {
  INFER_EACH(I, static_cast<int32_t>(float_bits(a.v[i] + 0x1.8p23f)) - static_cast<int32_t>(0x4b400000));
}
INFER_SIMD I f_bits(F a) { INFER_EACH(I, static_cast<int32_t>(float_bits(a.v[i]))); }
INFER_SIMD F f_from_bits(I a) { INFER_EACH(F, bits_float(static_cast<uint32_t>(a.v[i]))); }
INFER_SIMD F f_select_less(F a, F b, F yes, F no) { INFER_EACH(F, a.v[i] < b.v[i] ? yes.v[i] : no.v[i]); }
INFER_MATH F f_load_f16(const uint16_t* p) { INFER_EACH(F, half_to_float(p[i])); }
INFER_MATH void f_store_f16(uint16_t* p, F a) {
  for (int i = 0; i < 16; ++i) p[i] = float_to_half(a.v[i]);
}
INFER_SIMD F f_load_bf16(const uint16_t* p) { INFER_EACH(F, bits_float(static_cast<uint32_t>(p[i]) << 16)); }

// The tree of ggml-like/quant/dot.h.
INFER_SIMD float f_reduce_add(F a) {
  for (int n = 8; n >= 1; n /= 2) {
    for (int i = 0; i < n; ++i) a.v[i] = a.v[i] + a.v[i + n];
  }
  return a.v[0];
}

INFER_SIMD I i_zero() { INFER_EACH(I, 0); }
INFER_SIMD I i_set1(int32_t x) { INFER_EACH(I, x); }
INFER_SIMD I i_load(const void* p) {
  I r;
  __builtin_memcpy(&r, p, sizeof(r));
  return r;
}
INFER_SIMD I i_add(I a, I b) {
  INFER_EACH(I, static_cast<int32_t>(static_cast<uint32_t>(a.v[i]) + static_cast<uint32_t>(b.v[i])));
}
INFER_SIMD I i_sub(I a, I b) {
  INFER_EACH(I, static_cast<int32_t>(static_cast<uint32_t>(a.v[i]) - static_cast<uint32_t>(b.v[i])));
}
INFER_SIMD I i_max(I a, I b) { INFER_EACH(I, a.v[i] > b.v[i] ? a.v[i] : b.v[i]); }
INFER_SIMD I i_and(I a, I b) { INFER_EACH(I, a.v[i] & b.v[i]); }
INFER_SIMD I i_or(I a, I b) { INFER_EACH(I, a.v[i] | b.v[i]); }
template <int N>
INFER_SIMD I i_shl(I a) {
  INFER_EACH(I, static_cast<int32_t>(static_cast<uint32_t>(a.v[i]) << N));
}
template <int N>
INFER_SIMD I i_sar(I a) {
  INFER_EACH(I, a.v[i] >> N);
}

// Each byte of the lanes, a number below 16, becomes that entry of the table.
INFER_SIMD I i_lookup(const int8_t* table, I a) {
  uint8_t bytes[64];
  __builtin_memcpy(bytes, a.v, sizeof bytes);
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(table[b]);
  return i_load(bytes);
}
INFER_SIMD void i_store(void* p, I a) { __builtin_memcpy(p, a.v, sizeof a.v); }
// Low byte of each lane; REQUIRES values in -128 .. 127.
INFER_SIMD void i_store_s8(int8_t* p, I a) {
  for (int i = 0; i < 16; ++i) p[i] = static_cast<int8_t>(a.v[i]);
}
INFER_SIMD int32_t i_reduce_max(I a) {
  int32_t m = a.v[0];
  for (int i = 1; i < 16; ++i) m = a.v[i] > m ? a.v[i] : m;
  return m;
}
INFER_SIMD int32_t i_reduce_add(I a) {
  int32_t sum = 0;
  for (int i = 0; i < 16; ++i) sum += a.v[i];
  return sum;
}
// Lane i of a quarter is the sum of that quarter's lanes of a[i].
INFER_SIMD I i_sum_four(const I* a) {
  INFER_EACH(I,
             a[i % 4].v[i / 4 * 4] + a[i % 4].v[i / 4 * 4 + 1] + a[i % 4].v[i / 4 * 4 + 2] + a[i % 4].v[i / 4 * 4 + 3]);
}
#undef INFER_EACH
// Absolute values of bytes; REQUIRES that none is -128.
INFER_SIMD I i_abs8(I a) {
  I r = i_zero();
  for (int i = 0; i < 16; ++i) {
    for (int b = 0; b < 4; ++b) {
      const int x = static_cast<int8_t>(a.v[i] >> 8 * b);
      r.v[i] |= (x < 0 ? -x : x) << 8 * b;
    }
  }
  return r;
}
constexpr int kFloatRows = 1, kFloatTokens = 1, kFloatFewTokens = 1;
constexpr int kQueryTile = 4;
constexpr int kTileVectors = 2;  // of 16 scores or dimensions that a tile of queries computes at once
// Adds the products of the unsigned bytes of w and the signed bytes of x, four to each lane.
INFER_SIMD I i_dot_u8(I acc, I w, I x) {
  for (int i = 0; i < 16; ++i) {
    for (int b = 0; b < 4; ++b) acc.v[i] += (w.v[i] >> 8 * b & 255) * static_cast<int8_t>(x.v[i] >> 8 * b);
  }
  return acc;
}
constexpr int kProbeChains = 4;
// Makes the compiler keep the value in a register instead of loading it again.
INFER_SIMD void keep_in_register(I& a) { asm volatile("" : "+m"(a.v)); }
INFER_SIMD void keep_in_register(F& a) { asm volatile("" : "+m"(a.v)); }
