// The layout of a block of 32 tokens, in words of 4 bytes: first the keys of each KV head as [word][32 tokens], then
// the values of each as [32 tokens][word]. A row of a head takes whole words: a word holds two fp16 or bf16 values (an
// odd row ends with a zero); in quantized types every 32 values take 8 or 4 words of codes, one for their fifth bits if
// they have any, and as F32 one for the minimum, if there is one, and one for the scale. Latent caches have keys only, as [32 tokens][word] of each KV head; with a stride, a row for every `stride` tokens.
// Types are numbered by cache_type() in attention.cpp.

const uint kF32 = 0u, kF16 = 1u, kBF16 = 2u, kQ8_0 = 3u, kQ4_0 = 4u, kQ4_1 = 5u, kQ5_0 = 6u, kQ5_1 = 7u, kIQ4_NL = 8u;
// Specialization constant for a type that is in the push constants, used where compiling costs more than branching.
const uint kAnyType = 255u;
const uint kBlockTokens = 32u;

bool is_quantized(uint type) { return type >= kQ8_0; }
bool has_fifth_bits(uint type) { return type == kQ5_0 || type == kQ5_1; }
bool has_minimum(uint type) { return type == kQ4_1 || type == kQ5_1; }
uint code_words(uint type) { return type == kQ8_0 ? 8u : 4u; }

// The number of values in a storage unit, and of words.
uint unit_values(uint type) { return type == kF32 ? 1u : is_quantized(type) ? 32u : 2u; }
uint unit_words(uint type) {
  if (!is_quantized(type)) return 1u;
  return code_words(type) + 1u + (has_fifth_bits(type) ? 1u : 0u) + (has_minimum(type) ? 1u : 0u);
}
uint row_words(uint type, uint dim) {
  const uint values = unit_values(type);
  return (dim + values - 1u) / values * unit_words(type);
}

// The word of a row that holds dimension `dim`, and the first one of its unit.
uint word_of(uint type, uint dim) {
  if (type == kF32) return dim;
  if (!is_quantized(type)) return dim / 2u;
  return dim / 32u * unit_words(type) + (type == kQ8_0 ? dim % 32u : dim % 16u) / 4u;
}
uint unit_of(uint type, uint dim) { return dim / 32u * unit_words(type); }

// What the values of a quantized unit share.
struct Shared {
  float scale, minimum;
  uint fifth_bits;
};
// Of the unit of a quantized type that begins at words[at] and whose words are `stride` apart.
#define LOAD_SHARED(type, words, at, stride)                                                               \
  Shared(uintBitsToFloat(words[(at) + (unit_words(type) - 1u) * (stride)]),                                \
         has_minimum(type) ? uintBitsToFloat(words[(at) + (unit_words(type) - 2u) * (stride)]) : 0.0,      \
         has_fifth_bits(type) ? words[(at) + code_words(type) * (stride)] : 0u)
const Shared kNothingShared = Shared(0.0, 0.0, 0u);

// IQ4_NL's values as bytes.
const uvec4 kIQ4NLValues = uvec4(0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u);
float iq4_nl_value(uint code) { return float(int(kIQ4NLValues[code / 4u] << (24u - 8u * (code % 4u))) >> 24); }

// The value of dimension `dim` of a unit of a quantized type, in its word.
float quantized_value(uint type, uint word, Shared unit, uint dim) {
  const uint shift = 8u * (dim % 4u);
  if (type == kQ8_0) return unit.scale * float(int(word << (24u - shift)) >> 24);
  const uint nibble = (dim < 16u ? word >> shift : word >> (shift + 4u)) & 15u;
  if (type == kIQ4_NL) return unit.scale * iq4_nl_value(nibble);
  const uint code = has_fifth_bits(type) ? nibble | (unit.fifth_bits >> dim & 1u) << 4 : nibble;
  const float lowest = type == kQ4_0 ? 8.0 : type == kQ5_0 ? 16.0 : 0.0;
  precise float value = unit.scale * (float(code) - lowest);
  if (has_minimum(type)) value += unit.minimum;
  return value;
}
// The value of dimension `dim` in its word. `unit` is used for quantized types.
float value_in(uint type, uint word, Shared unit, uint dim) {
  if (type == kF32) return uintBitsToFloat(word);
  if (type == kF16) {
    const vec2 pair = unpackHalf2x16(word);
    return (dim & 1u) == 0u ? pair.x : pair.y;
  }
  if (type == kBF16) return uintBitsToFloat((dim & 1u) == 0u ? word << 16 : word & 0xffff0000u);
  return quantized_value(type, word, unit, dim % 32u);
}
