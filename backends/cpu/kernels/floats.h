// Float operations in 16 lanes, the same code on every level. Reductions are 16 partial sums (index mod 16) and the
// tree of ggml-like/quant/dot.h. Included inside an anonymous namespace after a SIMD header.

// exp(x): x = n ln 2 + r, |r| <= ln 2 / 2, polynomial of degree 6 in r; relative error below 2e-7. 0 below -103.98,
// infinity above 88.73; NaN stays NaN.
INFER_MATH F exp_lanes(F x) {
  // Arguments in this order keep a NaN (max and min return the second operand then).
  const F c = f_min(f_set1(89.0f), f_max(f_set1(-105.0f), x));
  const I n = f_round_to_int(f_mul(c, f_set1(0x1.715476p+0f)));
  const F nf = f_from_int(n);
  const F r = f_fnma(nf, f_set1(0x1.7f7d1cp-20f), f_fnma(nf, f_set1(0x1.62e4p-1f), c));
  F p = f_set1(0x1.6d117cp-10f);
  p = f_fma(p, r, f_set1(0x1.120be2p-7f));
  p = f_fma(p, r, f_set1(0x1.555518p-5f));
  p = f_fma(p, r, f_set1(0x1.5554dcp-3f));
  p = f_fma(p, r, f_set1(0.5f));
  p = f_fma(p, r, f_set1(1.0f));
  p = f_fma(p, r, f_set1(1.0f));
  // Two factors: 2^n alone would overflow or be flushed for the largest results and for denormals.
  const I half = i_sar<1>(n), rest = i_sub(n, half);
  const auto power = [](I k) INFER_LAMBDA { return f_from_bits(i_shl<23>(i_add(k, i_set1(127)))); };
  return f_mul(f_mul(p, power(half)), power(rest));
}

INFER_SIMD F sigmoid_lanes(F x) { return f_div(f_set1(1), f_add(f_set1(1), exp_lanes(f_sub(f_zero(), x)))); }

// tanh(|x|) = 1 - 2 / (exp(2 |x|) + 1); below 0.625, where the difference would cancel, |x| + |x|^3 P(x^2). Odd to the
// bit; relative error below 2e-7.
INFER_MATH F tanh_lanes(F x) {
  const F sign = f_from_bits(i_and(f_bits(x), i_set1(static_cast<int32_t>(0x80000000u))));
  const F a = f_from_bits(i_and(f_bits(x), i_set1(0x7fffffff)));
  const F large = f_sub(f_set1(1), f_div(f_set1(2), f_add(f_set1(1), exp_lanes(f_add(a, a)))));
  const F z = f_mul(a, a);
  F p = f_set1(-0x1.8c2326p-8f);
  p = f_fma(p, z, f_set1(0x1.576bf4p-6f));
  p = f_fma(p, z, f_set1(-0x1.b9152cp-5f));
  p = f_fma(p, z, f_set1(0x1.110dd6p-3f));
  p = f_fma(p, z, f_set1(-0x1.555552p-2f));
  const F small = f_fma(f_mul(p, z), a, a);
  const F y = f_select_less(z, f_set1(0.390625f), small, large);
  return f_from_bits(i_or(f_bits(y), f_bits(sign)));
}

// log(1 + e), 0 <= e <= 1: 2 atanh(s), s = e / (2 + e), as s P(s^2). Relative error below 3e-7.
INFER_MATH F log1p_lanes(F e) {
  const F s = f_div(e, f_add(f_set1(2), e)), z = f_mul(s, s);
  F p = f_set1(0x1.208bd0p-3f);
  p = f_fma(p, z, f_set1(0x1.1e510ap-3f));
  p = f_fma(p, z, f_set1(0x1.99dae6p-3f));
  p = f_fma(p, z, f_set1(0x1.5554e0p-2f));
  p = f_fma(p, z, f_set1(1));
  return f_mul(f_add(s, s), p);
}

// exp(x) - 1 for x <= 0: above -0.5, where the difference would cancel, x + x^2 P(x). Relative error below 4e-7.
INFER_MATH F expm1_lanes(F x) {
  F p = f_set1(0x1.a01a02p-16f);
  p = f_fma(p, x, f_set1(0x1.a01a02p-13f));
  p = f_fma(p, x, f_set1(0x1.6c16c2p-10f));
  p = f_fma(p, x, f_set1(0x1.111112p-7f));
  p = f_fma(p, x, f_set1(0x1.555556p-5f));
  p = f_fma(p, x, f_set1(0x1.555556p-3f));
  p = f_fma(p, x, f_set1(0.5f));
  const F small = f_fma(f_mul(p, x), x, x);
  return f_select_less(x, f_set1(-0.5f), f_sub(exp_lanes(x), f_set1(1)), small);
}

// erf(x): below 1 x P(x^2), above 1 - exp(-x^2) Q(1 / (1 + |x| / 2)). Relative error below 2e-7.
INFER_MATH F erf_lanes(F x) {
  const F sign = f_from_bits(i_and(f_bits(x), i_set1(static_cast<int32_t>(0x80000000u))));
  const F a = f_from_bits(i_and(f_bits(x), i_set1(0x7fffffff)));
  const F z = f_mul(a, a);
  F p = f_set1(0x1.4a5690p-14f);
  p = f_fma(p, z, f_set1(-0x1.a45088p-11f));
  p = f_fma(p, z, f_set1(0x1.541270p-8f));
  p = f_fma(p, z, f_set1(-0x1.b7fabap-6f));
  p = f_fma(p, z, f_set1(0x1.ce2d10p-4f));
  p = f_fma(p, z, f_set1(-0x1.81273ep-2f));
  p = f_fma(p, z, f_set1(0x1.20dd74p+0f));
  const F small = f_mul(a, p);
  const F t = f_div(f_set1(1), f_fma(a, f_set1(0.5f), f_set1(1)));
  F q = f_set1(-0x1.bbbd76p-3f);
  q = f_fma(q, t, f_set1(0x1.32ad64p-1f));
  q = f_fma(q, t, f_set1(-0x1.92878ep-6f));
  q = f_fma(q, t, f_set1(0x1.80e718p-2f));
  q = f_fma(q, t, f_set1(0x1.0f7ffep-2f));
  q = f_fma(q, t, f_set1(0x1.4b01f4p-10f));
  const F large = f_fnma(q, exp_lanes(f_sub(f_zero(), z)), f_set1(1));
  const F y = f_select_less(a, f_set1(1), small, large);
  return f_from_bits(i_or(f_bits(y), f_bits(sign)));
}

template <UnaryKind K>
INFER_SIMD F activate_lanes(F x) {
  if constexpr (K == UnaryKind::kSilu) return f_div(x, f_add(f_set1(1), exp_lanes(f_sub(f_zero(), x))));
  if constexpr (K == UnaryKind::kGeluTanh) {
    const F inner = f_mul(f_mul(f_set1(0.7978845608f), x), f_fma(f_mul(x, x), f_set1(0.044715f), f_set1(1)));
    return f_mul(f_mul(f_set1(0.5f), x), f_add(f_set1(1), tanh_lanes(inner)));
  }
  if constexpr (K == UnaryKind::kGeluErf) {
    return f_mul(f_mul(f_set1(0.5f), x), f_add(f_set1(1), erf_lanes(f_mul(x, f_set1(0.70710678f)))));
  }
  if constexpr (K == UnaryKind::kRelu) return f_max(f_zero(), x);
  if constexpr (K == UnaryKind::kReluSquared) {
    const F r = f_max(f_zero(), x);
    return f_mul(r, r);
  }
  if constexpr (K == UnaryKind::kSigmoid) return sigmoid_lanes(x);
  if constexpr (K == UnaryKind::kTanh) return tanh_lanes(x);
  if constexpr (K == UnaryKind::kGeluQuick) {
    return f_div(x, f_add(f_set1(1), exp_lanes(f_mul(f_set1(-1.702f), x))));
  }
  if constexpr (K == UnaryKind::kSoftplus) {
    const F a = f_from_bits(i_and(f_bits(x), i_set1(0x7fffffff)));
    return f_add(f_max(f_zero(), x), log1p_lanes(exp_lanes(f_sub(f_zero(), a))));
  }
}

// y[i] = f(16 lanes from i on); the last vector may be partial.
template <typename G>
INFER_SIMD void for_lanes(float* y, int64_t n, const G& g) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) f_store(y + i, g(i, 16));
  if (i < n) f_store_first(y + i, g(i, static_cast<int>(n - i)), static_cast<int>(n - i));
}
INFER_SIMD F take(const float* p, int n) { return n == 16 ? f_load(p) : f_load_first(p, n); }

template <typename G>
INFER_SIMD void with_kind(UnaryKind kind, const G& g) {
  switch (kind) {
    case UnaryKind::kSilu:
      return g.template operator()<UnaryKind::kSilu>();
    case UnaryKind::kGeluTanh:
      return g.template operator()<UnaryKind::kGeluTanh>();
    case UnaryKind::kGeluErf:
      return g.template operator()<UnaryKind::kGeluErf>();
    case UnaryKind::kRelu:
      return g.template operator()<UnaryKind::kRelu>();
    case UnaryKind::kReluSquared:
      return g.template operator()<UnaryKind::kReluSquared>();
    case UnaryKind::kSigmoid:
      return g.template operator()<UnaryKind::kSigmoid>();
    case UnaryKind::kTanh:
      return g.template operator()<UnaryKind::kTanh>();
    case UnaryKind::kGeluQuick:
      return g.template operator()<UnaryKind::kGeluQuick>();
    case UnaryKind::kSoftplus:
      return g.template operator()<UnaryKind::kSoftplus>();
  }
}

void unary(UnaryKind kind, const float* x, float* y, int64_t n) {
  with_kind(kind, [&]<UnaryKind K>() {
    for_lanes(y, n, [&](int64_t i, int count) INFER_LAMBDA { return activate_lanes<K>(take(x + i, count)); });
  });
}
void xielu(const XieluParams& p, const float* x, float* y, int64_t n) {
  for_lanes(y, n, [&](int64_t i, int count) INFER_LAMBDA {
    const F v = take(x + i, count), linear = f_mul(v, f_set1(p.beta));
    const F above = f_fma(f_mul(v, f_set1(p.alpha_p)), v, linear);
    const F least = f_min(f_zero(), f_min(f_set1(p.eps), v));  // NaN stays NaN
    const F below = f_fma(f_sub(expm1_lanes(least), v), f_set1(p.alpha_n), linear);
    return f_select_less(f_zero(), v, above, below);
  });
}
// The limits of GatedActivationParams. f_min and f_max keep a NaN in their second operand.
void gated_within_limits(const GatedActivationParams& p, const float* gate, const float* up, float* y, int64_t n) {
  const float lowest = -p.up_limit;
  with_kind(p.kind, [&]<UnaryKind K>() {
    for_lanes(y, n, [&](int64_t i, int count) INFER_LAMBDA {
      const F f = activate_lanes<K>(f_min(f_set1(p.gate_limit), take(gate + i, count)));
      const F limited = f_min(f_set1(p.up_limit), f_max(f_set1(lowest), take(up + i, count)));
      return f_mul(f_min(f_set1(p.activation_limit), f), f_add(limited, f_set1(p.up_offset)));
    });
  });
}
void gated(const GatedActivationParams& p, const float* gate, const float* up, float* y, int64_t n) {
  if (!p.plain()) return gated_within_limits(p, gate, up, y, n);
  with_kind(p.kind, [&]<UnaryKind K>() {
    for_lanes(y, n, [&](int64_t i, int count) INFER_LAMBDA {
      return f_mul(activate_lanes<K>(take(gate + i, count)), take(up + i, count));
    });
  });
}
void add(const float* a, const float* b, float* y, int64_t n) {
  for_lanes(y, n, [&](int64_t i, int count) INFER_LAMBDA { return f_add(take(a + i, count), take(b + i, count)); });
}
void mul(const float* a, const float* b, float* y, int64_t n) {
  for_lanes(y, n, [&](int64_t i, int count) INFER_LAMBDA { return f_mul(take(a + i, count), take(b + i, count)); });
}
void scale(const float* x, float factor, float* y, int64_t n) {
  for_lanes(y, n, [&](int64_t i, int count) INFER_LAMBDA { return f_mul(take(x + i, count), f_set1(factor)); });
}
void weighted_add(const float* x, float weight, float* y, int64_t n) {
  for_lanes(y, n, [&](int64_t i, int count) INFER_LAMBDA {
    return f_fma(take(x + i, count), f_set1(weight), take(y + i, count));
  });
}

// Sum of g(lanes) over n values; lanes past the end must give zero.
template <typename G>
INFER_SIMD float sum_lanes(int64_t n, const G& g) {
  F sum = f_zero();
  for (int64_t i = 0; i < n; i += 16) sum = g(i, n - i < 16 ? static_cast<int>(n - i) : 16, sum);
  return f_reduce_add(sum);
}

void rms_norm(const float* x, const float* weight, float eps, float* y, int64_t n) {
  const float sum = sum_lanes(n, [&](int64_t i, int count, F s) INFER_LAMBDA {
    const F v = take(x + i, count);
    return f_fma(v, v, s);
  });
  const float factor = 1.0f / __builtin_sqrtf(sum / static_cast<float>(n) + eps);
  for_lanes(y, n, [&](int64_t i, int count) INFER_LAMBDA {
    const F v = f_mul(take(x + i, count), f_set1(factor));
    return weight ? f_mul(v, take(weight + i, count)) : v;
  });
}

void layer_norm(const float* x, const float* weight, const float* bias, float eps, float* y, int64_t n) {
  const float mean =
      sum_lanes(n, [&](int64_t i, int count, F s) INFER_LAMBDA { return f_add(take(x + i, count), s); }) /
      static_cast<float>(n);
  for_lanes(y, n, [&](int64_t i, int count) INFER_LAMBDA { return f_sub(take(x + i, count), f_set1(mean)); });
  const float square = sum_lanes(n, [&](int64_t i, int count, F s) INFER_LAMBDA {
    const F v = take(y + i, count);
    return f_fma(v, v, s);
  });
  const float factor = 1.0f / __builtin_sqrtf(square / static_cast<float>(n) + eps);
  for_lanes(y, n, [&](int64_t i, int count) INFER_LAMBDA {
    F v = f_mul(take(y + i, count), f_set1(factor));
    if (weight) v = f_mul(v, take(weight + i, count));
    return bias ? f_add(v, take(bias + i, count)) : v;
  });
}

float rms(const float* x, int64_t n) {
  const float sum = sum_lanes(n, [&](int64_t i, int count, F s) INFER_LAMBDA {
    const F v = take(x + i, count);
    return f_fma(v, v, s);
  });
  return __builtin_sqrtf(sum / static_cast<float>(n));
}

void sparsify(const float* x, float factor, float* y, int64_t n) {
  const float mean =
      sum_lanes(n, [&](int64_t i, int count, F s) INFER_LAMBDA { return f_add(take(x + i, count), s); }) /
      static_cast<float>(n);
  for_lanes(y, n, [&](int64_t i, int count) INFER_LAMBDA { return f_sub(take(x + i, count), f_set1(mean)); });
  const float square = sum_lanes(n, [&](int64_t i, int count, F s) INFER_LAMBDA {
    const F v = take(y + i, count);
    return f_fma(v, v, s);
  });
  const float cutoff = factor * __builtin_sqrtf(square / static_cast<float>(n - 1));
  for_lanes(y, n, [&](int64_t i, int count) INFER_LAMBDA {
    return f_max(f_zero(), f_sub(take(y + i, count), f_set1(cutoff)));  // NaN stays NaN
  });
}

// Largest value; -infinity for n = 0. NaN never wins over a number.
INFER_OUTLINE float max_value(const float* x, int64_t n) {
  const float lowest = -__builtin_inff();
  F m = f_set1(lowest);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) m = f_max(f_load(x + i), m);
  float lanes[16];
  f_store(lanes, m);
  float best = lowest;
  for (int j = 0; j < 16; ++j) best = lanes[j] > best ? lanes[j] : best;
  for (; i < n; ++i) best = x[i] > best ? x[i] : best;
  return best;
}
// y = exp(x - maximum); returns the sum.
INFER_OUTLINE float exp_and_sum(const float* x, float maximum, float* y, int64_t n) {
  for_lanes(y, n,
            [&](int64_t i, int count) INFER_LAMBDA { return exp_lanes(f_sub(take(x + i, count), f_set1(maximum))); });
  return sum_lanes(n, [&](int64_t i, int count, F s) INFER_LAMBDA { return f_add(take(y + i, count), s); });
}
void softmax(const float* x, float* y, int64_t n) {
  const float factor = 1.0f / exp_and_sum(x, max_value(x, n), y, n);
  scale(y, factor, y, n);
}
void max_and_sum(const float* x, int64_t n, float* maximum, float* sum) {
  *maximum = max_value(x, n);
  const F m = f_set1(*maximum);
  F s = f_zero();
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) s = f_add(exp_lanes(f_sub(f_load(x + i), m)), s);
  if (i < n) {
    float rest[16];
    for (int j = 0; j < 16; ++j) rest[j] = i + j < n ? x[i + j] : -__builtin_inff();
    s = f_add(exp_lanes(f_sub(f_load(rest), m)), s);
  }
  *sum = f_reduce_add(s);
}

void rope(const float* x, const float* table, int n_dims, bool interleaved, float* y, int64_t head_dim) {
  const int pairs = n_dims / 2;
  const int step = interleaved ? 2 : 1, other = interleaved ? 1 : pairs;
  for (int i = 0; i < pairs; ++i) {
    const float c = table[2 * i], s = table[2 * i + 1], a = x[i * step], b = x[i * step + other];
    const float as = a * s, bs = b * s;
    y[i * step] = __builtin_fmaf(a, c, -bs);
    y[i * step + other] = __builtin_fmaf(b, c, as);
  }
  for (int64_t i = n_dims; i < head_dim; ++i) y[i] = x[i];
}

void to_f16(const float* x, uint16_t* y, int64_t n) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) f_store_f16(y + i, f_load(x + i));
  if (i < n) {
    uint16_t rest[16];
    f_store_f16(rest, f_load_first(x + i, static_cast<int>(n - i)));
    for (int64_t j = i; j < n; ++j) y[j] = rest[j - i];
  }
}

// ---- Activations (formula in ggml-like/quant/activation.h) ----

// Quantizes kVectors * 16 values; sums[v], unless null, is the sum of vector v. Returns the scale.
template <int kVectors>
INFER_SIMD float quantize_block(const float* x, int8_t* q, int16_t* sums) {
  I largest = i_zero();
  for (int v = 0; v < kVectors; ++v) largest = i_max(largest, i_and(f_bits(f_load(x + 16 * v)), i_set1(0x7fffffff)));
  const int32_t bits = i_reduce_max(largest);
  const float a = __builtin_bit_cast(float, bits);
  if (bits == 0 || bits >= 0x7f800000) {
    __builtin_memset(q, 0, 16 * kVectors);
    for (int v = 0; sums && v < kVectors; ++v) sums[v] = 0;
    return bits == 0 ? 0.0f : __builtin_nanf("");
  }
  const float inverse = 127.0f / a;
  const F factor = f_set1(inverse <= 0x1.fffffep+127f ? inverse : 0.0f);  // of a denormal: all codes are zero
  for (int v = 0; v < kVectors; ++v) {
    const I rounded = f_round_to_int(f_mul(f_load(x + 16 * v), factor));
    i_store_s8(q + 16 * v, rounded);
    if (sums) sums[v] = static_cast<int16_t>(i_reduce_add(rounded));
  }
  return a / 127.0f;
}
void quantize256(const float* x, Activation256* out, int64_t out_stride, int64_t n_blocks) {
  const I ones = i_set1(0x01010101);
  for (int64_t b = 0; b < n_blocks; ++b) {
    Activation256& block = out[b * out_stride];
    block.d = quantize_block<16>(x + 256 * b, block.q, nullptr);
    I sums[4], magnitudes[4];
    for (int i = 0; i < 4; ++i) {
      const I q = i_load(block.q + 64 * i);
      sums[i] = i_dot_u8(i_zero(), ones, q);
      magnitudes[i] = i_dot_u8(i_zero(), i_abs8(q), ones);
    }
    block.peak16 = i_reduce_max(i_sum_four(magnitudes));
    alignas(64) int32_t lanes[16];
    i_store(lanes, i_sum_four(sums));
    for (int j = 0; j < 16; ++j) block.sum16[j] = static_cast<int16_t>(lanes[j % 4 * 4 + j / 4]);
    for (int j = 0; j < 8; ++j) block.sum32[j] = static_cast<int16_t>(block.sum16[2 * j] + block.sum16[2 * j + 1]);
  }
}
void quantize32(const float* x, Activation32* out, int64_t out_stride, int64_t n_blocks) {
  for (int64_t b = 0; b < n_blocks; ++b) {
    Activation32& block = out[b * out_stride];
    block.d = quantize_block<2>(x + 32 * b, block.q, block.sum16);
    block.sum32 = static_cast<int16_t>(block.sum16[0] + block.sum16[1]);
  }
}
