// The part of weights.glsl for ternary types and those with codebooks; `s` counts groups of 16 in a block. The
// including shader defines CODEBOOK_BINDING, where the packed codebook is (codebooks.h).

// Four 3-bit fields, one to each byte.
uint spread_triples(uint bits) {
  return bits & 7u | (bits & 0x38u) << 5 | (bits & 0x1c0u) << 10 | (bits & 0xe00u) << 15;
}

// ---- Ternary ----

#ifdef TYPE_TQ1_0
#define TQ1_0_BLOCK 256
#define TQ1_0_BYTES 54
// Digit `n` in base three of the fractions in two bytes, in the low and the high half of a word.
uint digits(uint halves, uint power) { return ((halves * power & 0x00ff00ffu) * 3u) >> 8 & 0x00030003u; }
Codes load_codes(uint row_at, uint group) {
  const uint powers[5] = uint[5](1u, 3u, 9u, 27u, 81u);
  const uint block = row_at + (group >> 4) * TQ1_0_BYTES, s = group & 15u;
  const uint at = s < 10u ? 16u * (s & 1u) : s < 15u ? 32u : 48u;
  Codes c;
  c.scale = half_to_float(load16(block + 52u));
  c.offset = 0.0;
  for (uint j = 0u; j < 4u; ++j) {
    const uint w = load32(block + at + (s < 15u ? 4u * j : 0u));
    const uint power = powers[s < 10u ? s >> 1 : s < 15u ? s - 10u : j];
    c.word[j] = minus4(digits(w & 0x00ff00ffu, power) | digits(w >> 8 & 0x00ff00ffu, power) << 8, 0x01010101u);
  }
  return c;
}
#endif

#ifdef TYPE_TQ2_0
#define TQ2_0_BLOCK 256
#define TQ2_0_BYTES 66
Codes load_codes(uint row_at, uint group) {
  const uint block = row_at + (group >> 4) * TQ2_0_BYTES, s = group & 15u;
  const uint codes = block + 32u * (s >> 3) + 16u * (s & 1u), shift = 2u * (s >> 1 & 3u);
  Codes c;
  c.scale = half_to_float(load16(block + 64u));
  c.offset = 0.0;
  for (uint j = 0u; j < 4u; ++j) c.word[j] = minus4(load32(codes + 4u * j) >> shift & 0x03030303u, 0x01010101u);
  return c;
}
#endif

#if defined(TYPE_IQ1_S) || defined(TYPE_IQ1_M) || defined(TYPE_IQ2_XXS) || defined(TYPE_IQ2_XS) || \
    defined(TYPE_IQ2_S) || defined(TYPE_IQ3_XXS) || defined(TYPE_IQ3_S)
layout(set = 0, binding = CODEBOOK_BINDING, std430) readonly buffer Codebook { uint codebook_words[]; };
uint codebook(uint i) { return codebook_words[i >> 1] >> 16u * (i & 1u) & 0xffffu; }
#endif

// ---- Magnitudes from a codebook, and signs ----

// Four magnitudes, negated where one of the low four bits of `signs` is set.
uint with_signs(uint magnitudes, uint signs) {
  const uint flags = (spread4(signs & 15u) >> 4) * 255u;
  return minus4(magnitudes & ~flags, magnitudes & flags);
}
// Seven signs of eight values; the eighth makes the number of negative ones even.
uint even_signs(uint bits) { return bits & 127u | uint(bitCount(bits & 127u) & 1) << 7; }
// The magnitudes 8, 25 and 43 of IQ2.
uint iq2_magnitudes(uint bits) {
  const uint levels = spread_pairs(bits & 255u);
  return 0x08080808u + (levels & 0x01010101u) * 17u + (levels >> 1 & 0x01010101u) * 35u;
}
// Values 8 * half .. of a group of 16, from a packed entry of eight magnitudes.
void set_iq2(inout Codes c, uint half_group, uint entry, uint signs) {
  c.word[2u * half_group] = with_signs(iq2_magnitudes(entry), signs);
  c.word[2u * half_group + 1u] = with_signs(iq2_magnitudes(entry >> 8), signs >> 4);
}
float odd_scale(uint s) { return float(2u * s + 1u); }

#ifdef TYPE_IQ2_XXS
#define IQ2_XXS_BLOCK 256
#define IQ2_XXS_BYTES 66
Codes load_codes(uint row_at, uint group) {
  const uint block = row_at + (group >> 4) * IQ2_XXS_BYTES, s = group & 15u;
  const uint at = block + 2u + 8u * (s >> 1), first = 2u * (s & 1u);
  const uint indices = load16(at + first), rest = load32(at + 4u);
  Codes c;
  c.scale = half_to_float(load16(block)) * (0.125 * odd_scale(rest >> 28));
  c.offset = 0.0;
  for (uint h = 0u; h < 2u; ++h) {
    set_iq2(c, h, codebook(indices >> 8u * h & 255u), even_signs(rest >> 7u * (first + h)));
  }
  return c;
}
#endif

#ifdef TYPE_IQ2_XS
#define IQ2_XS_BLOCK 256
#define IQ2_XS_BYTES 74
Codes load_codes(uint row_at, uint group) {
  const uint block = row_at + (group >> 4) * IQ2_XS_BYTES, s = group & 15u, pair = load32(block + 2u + 4u * s);
  Codes c;
  c.scale = half_to_float(load16(block)) * (0.125 * odd_scale(load8(block + 66u + (s >> 1)) >> 4u * (s & 1u) & 15u));
  c.offset = 0.0;
  for (uint h = 0u; h < 2u; ++h) {
    const uint packed = pair >> 16u * h & 0xffffu;
    set_iq2(c, h, codebook(packed & 511u), even_signs(packed >> 9));
  }
  return c;
}
#endif

#ifdef TYPE_IQ2_S
#define IQ2_S_BLOCK 256
#define IQ2_S_BYTES 82
Codes load_codes(uint row_at, uint group) {
  const uint block = row_at + (group >> 4) * IQ2_S_BYTES, s = group & 15u;
  const uint low = load16(block + 2u + 2u * s), signs = load16(block + 34u + 2u * s);
  const uint high = load8(block + 66u + (s >> 1)) >> 4u * (s & 1u);
  Codes c;
  c.scale = half_to_float(load16(block)) * (0.125 * odd_scale(load8(block + 74u + (s >> 1)) >> 4u * (s & 1u) & 15u));
  c.offset = 0.0;
  for (uint h = 0u; h < 2u; ++h) {
    set_iq2(c, h, codebook(low >> 8u * h & 255u | (high >> 2u * h & 3u) << 8), signs >> 8u * h);
  }
  return c;
}
#endif

#ifdef TYPE_IQ3_XXS
#define IQ3_XXS_BLOCK 256
#define IQ3_XXS_BYTES 98
Codes load_codes(uint row_at, uint group) {
  const uint block = row_at + (group >> 4) * IQ3_XXS_BYTES, s = group & 15u;
  const uint indices = load32(block + 2u + 4u * s), rest = load32(block + 66u + 4u * (s >> 1));
  const uint bits = rest >> 14u * (s & 1u), signs = even_signs(bits) | even_signs(bits >> 7) << 8;
  Codes c;
  c.scale = half_to_float(load16(block)) * (0.25 * odd_scale(rest >> 28));
  c.offset = 0.0;
  for (uint j = 0u; j < 4u; ++j) {
    const uint levels = spread_triples(codebook(indices >> 8u * j & 255u));
    // 4, 12, 20, ..., 52 and 62.
    const uint last = levels & levels >> 1 & levels >> 2 & 0x01010101u;
    c.word[j] = with_signs(0x04040404u + levels * 8u + last * 2u, signs >> 4u * j);
  }
  return c;
}
#endif

#ifdef TYPE_IQ3_S
#define IQ3_S_BLOCK 256
#define IQ3_S_BYTES 110
Codes load_codes(uint row_at, uint group) {
  const uint block = row_at + (group >> 4) * IQ3_S_BYTES, s = group & 15u;
  const uint low = load32(block + 2u + 4u * s), high = load8(block + 66u + (s >> 1)) >> 4u * (s & 1u);
  const uint signs = load16(block + 74u + 2u * s);
  Codes c;
  c.scale = half_to_float(load16(block)) * odd_scale(load8(block + 106u + (s >> 2)) >> 4u * (s >> 1 & 1u) & 15u);
  c.offset = 0.0;
  for (uint j = 0u; j < 4u; ++j) {
    const uint levels = spread_triples(codebook(low >> 8u * j & 255u | (high >> j & 1u) << 8));
    c.word[j] = with_signs(0x01010101u + levels * 2u, signs >> 4u * j);
  }
  return c;
}
#endif

// ---- Ternary values from a codebook, times eight, and a shift ----

#if defined(TYPE_IQ1_S) || defined(TYPE_IQ1_M)
void set_iq1(inout Codes c, uint half_group, uint entry, bool minus) {
  const uint less = minus ? 0x09090909u : 0x07070707u;
  for (uint j = 0u; j < 2u; ++j) {
    c.word[2u * half_group + j] = minus4(spread_pairs(entry >> 8u * j & 255u) * 8u, less);
  }
}
#endif

#ifdef TYPE_IQ1_S
#define IQ1_S_BLOCK 256
#define IQ1_S_BYTES 50
Codes load_codes(uint row_at, uint group) {
  const uint block = row_at + (group >> 4) * IQ1_S_BYTES, s = group & 15u;
  const uint low = load16(block + 2u + 2u * s), rest = load16(block + 34u + 2u * (s >> 1));
  const uint high = rest >> 6u * (s & 1u);
  Codes c;
  c.scale = half_to_float(load16(block)) * (0.125 * odd_scale(rest >> 12 & 7u));
  c.offset = 0.0;
  for (uint h = 0u; h < 2u; ++h) {
    set_iq1(c, h, codebook(low >> 8u * h & 255u | (high >> 3u * h & 7u) << 8), (rest & 0x8000u) != 0u);
  }
  return c;
}
#endif

#ifdef TYPE_IQ1_M
#define IQ1_M_BLOCK 256
#define IQ1_M_BYTES 56
Codes load_codes(uint row_at, uint group) {
  const uint block = row_at + (group >> 4) * IQ1_M_BYTES, s = group & 15u;
  const uint low = load16(block + 2u * s), high = load8(block + 32u + s);
  const uint a = load32(block + 48u), b = load32(block + 52u), scales = (s < 8u ? a : b) >> 16u * (s >> 2 & 1u);
  const uint d = a >> 12 & 15u | a >> 24 & 0xf0u | (b >> 12 & 15u) << 8 | (b >> 28) << 12;
  Codes c;
  c.scale = half_to_float(d) * (0.125 * odd_scale(scales >> 3u * (s & 3u) & 7u));
  c.offset = 0.0;
  for (uint h = 0u; h < 2u; ++h) {
    const uint nibble = high >> 4u * h;
    set_iq1(c, h, codebook(low >> 8u * h & 255u | (nibble & 7u) << 8), (nibble & 8u) != 0u);
  }
  return c;
}
#endif
