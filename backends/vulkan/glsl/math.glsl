// exp, tanh, erf and division with known errors, the same on every device; Vulkan allows larger errors in its own
// functions than are acceptable in results. The polynomials are those of the CPU backend.

const uint kSignBit = 0x80000000u;

// x = n ln 2 + r, a polynomial of degree 6 in r; relative error below 2e-7. 0 below -87.3 (no denormals), infinity
// above 88.73; NaN stays NaN.
float exp_of(float x) {
  const float c = isnan(x) ? x : clamp(x, -88.0, 89.0);
  // In two steps, the first of which is exact; `precise` keeps compilers from merging them.
  precise const float n = roundEven(c * 1.44269502), high = c - n * 0.693145752, r = high - n * 1.42860677e-06;
  precise float p = fma(0.00139262504, r, 0.00836323295);
  p = fma(p, r, 0.0416665524);
  p = fma(p, r, 0.166665763);
  p = fma(p, r, 0.5);
  p = fma(p, r, 1.0);
  p = fma(p, r, 1.0);
  if (isnan(x)) return x;
  if (x < -87.3) return 0.0;
  if (x > 88.73) return infinity();
  const int k = int(n), half_k = k >> 1;  // two factors, because 2^128 is not a float
  return p * uintBitsToFloat(uint(half_k + 127) << 23) * uintBitsToFloat(uint(k - half_k + 127) << 23);
}

// log(x) for x >= 1: the hardware's logarithm, improved by one step of Newton's method on exp.
float log_of(float x) {
  const float y = log(x);
  return y + (x * exp_of(-y) - 1.0);
}

// a * b as the sum of two floats, without relying on a fused multiply-add, which Vulkan does not promise (Dekker).
vec2 exact_product(float a, float b) {
  precise const float p = a * b;
  precise const float sa = a * 4097.0, sb = b * 4097.0;  // 2^12 + 1 splits 24 bits in half
  precise const float ah = sa - (sa - a), bh = sb - (sb - b), al = a - ah, bl = b - bh;
  precise const float rest = ((ah * bh - p) + ah * bl + al * bh) + al * bl;
  return vec2(p, rest);
}

// a / b, correctly rounded except in rare cases; Vulkan's own division may be off by 2.5 units in the last place.
float divide(float a, float b) {
  const float q = a / b;
  const vec2 product = exact_product(q, b);
  precise const float better = q + ((a - product.x) - product.y) / b;
  return isnan(better) || isinf(better) || isinf(q) ? q : better;
}

float tanh_of(float x) {
  const uint sign = floatBitsToUint(x) & kSignBit;
  const float a = abs(x), z = a * a;
  precise float y;
  if (z < 0.390625) {
    precise float p = fma(-0.00604457548, z, 0.0209607966);
    p = fma(p, z, -0.0538431033);
    p = fma(p, z, 0.133327171);
    p = fma(p, z, -0.333333284);
    y = fma(p * z, a, a);
  } else {
    y = 1.0 - divide(2.0, 1.0 + exp_of(a + a));
  }
  return uintBitsToFloat(floatBitsToUint(y) | sign);
}

// sqrt(x), x >= 0, correctly rounded except in rare cases; Vulkan's own may be off by several units in the last place.
float root_of(float x) {
  const float y = sqrt(x);
  const vec2 square = exact_product(y, y);
  precise const float better = y + ((x - square.x) - square.y) / (y + y);
  return isnan(better) || isinf(better) ? y : better;
}

float sigmoid_of(float x) { return divide(1.0, 1.0 + exp_of(-x)); }

// log(1 + e), 0 <= e <= 1: 2 atanh(s), s = e / (2 + e), as s P(s^2).
float log1p_of(float e) {
  const float s = divide(e, 2.0 + e), z = s * s;
  precise float p = fma(0.140891671, z, 0.139803007);
  p = fma(p, z, 0.200124547);
  p = fma(p, z, 0.333331585);
  p = fma(p, z, 1.0);
  return (s + s) * p;
}

// log(1 + exp(x)).
float softplus_of(float x) { return (x < 0.0 ? 0.0 : x) + log1p_of(exp_of(-abs(x))); }

// exp(x) - 1 for x <= 0: above -0.5, where the difference would cancel, x + x^2 P(x).
float expm1_of(float x) {
  if (x < -0.5) return exp_of(x) - 1.0;
  precise float p = fma(2.48015876e-05, x, 0.000198412701);
  p = fma(p, x, 0.00138888892);
  p = fma(p, x, 0.00833333377);
  p = fma(p, x, 0.0416666679);
  p = fma(p, x, 0.166666672);
  p = fma(p, x, 0.5);
  precise const float y = fma(p * x, x, x);
  return y;
}

float erf_of(float x) {
  const uint sign = floatBitsToUint(x) & kSignBit;
  const float a = abs(x), z = a * a;
  precise float y;
  if (a < 1.0) {
    precise float p = 7.87587487e-05;
    p = fma(p, z, -0.00080168643);
    p = fma(p, z, 0.00518908724);
    p = fma(p, z, -0.0268542115);
    p = fma(p, z, 0.112835944);
    p = fma(p, z, -0.37612626);
    p = fma(p, z, 1.12837911);
    y = a * p;
  } else {
    const float t = divide(1.0, fma(a, 0.5, 1.0));
    precise float q = -0.216669962;
    q = fma(q, t, 0.598979115);
    q = fma(q, t, -0.0245684516);
    q = fma(q, t, 0.375881553);
    q = fma(q, t, 0.265136689);
    q = fma(q, t, 0.0012626939);
    y = fma(-q, exp_of(-z), 1.0);
  }
  return uintBitsToFloat(floatBitsToUint(y) | sign);
}
