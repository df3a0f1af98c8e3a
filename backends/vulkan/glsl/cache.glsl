// The layout of a block of 32 tokens, in words of 4 bytes: first the keys of each KV head as [word][32 tokens], then
// the values of each as [32 tokens][word]. A row of a head takes whole words: a word holds two fp16 or bf16 values (an
// odd row ends with a zero); in Q8_0 and Q4_0 every 32 values take 8 or 4 words of codes, and one for the scale as F32.
// Latent caches have keys only, as [32 tokens][word] of each KV head; with a stride, a row for every `stride` tokens.
// Types are numbered by cache_type() in attention.cpp.

const uint kF32 = 0u, kF16 = 1u, kBF16 = 2u, kQ8_0 = 3u, kQ4_0 = 4u;
// Specialization constant for a type that is in the push constants, used where compiling costs more than branching.
const uint kAnyType = 255u;
const uint kBlockTokens = 32u;

// The number of values in a storage unit, and of words.
uint unit_values(uint type) { return type == kF32 ? 1u : type >= kQ8_0 ? 32u : 2u; }
uint unit_words(uint type) { return type == kQ8_0 ? 9u : type == kQ4_0 ? 5u : 1u; }
uint row_words(uint type, uint dim) {
  const uint values = unit_values(type);
  return (dim + values - 1u) / values * unit_words(type);
}

// The word of a row that holds dimension `dim`, and the one that holds its scale, if there is one.
uint word_of(uint type, uint dim) {
  if (type == kF32) return dim;
  if (type < kQ8_0) return dim / 2u;
  return dim / 32u * unit_words(type) + (type == kQ8_0 ? dim % 32u : dim % 16u) / 4u;
}
uint scale_word_of(uint type, uint dim) { return (dim / 32u + 1u) * unit_words(type) - 1u; }
// The value of dimension `dim` in its word. `scale`: the word with the scale.
float value_in(uint type, uint word, uint scale, uint dim) {
  if (type == kF32) return uintBitsToFloat(word);
  if (type == kF16) {
    const vec2 pair = unpackHalf2x16(word);
    return (dim & 1u) == 0u ? pair.x : pair.y;
  }
  if (type == kBF16) return uintBitsToFloat((dim & 1u) == 0u ? word << 16 : word & 0xffff0000u);
  const uint shift = 8u * (dim % 4u);
  if (type == kQ8_0) return uintBitsToFloat(scale) * float(int(word << (24u - shift)) >> 24);
  return uintBitsToFloat(scale) * (float((dim % 32u < 16u ? word >> shift : word >> (shift + 4u)) & 15u) - 8.0);
}
