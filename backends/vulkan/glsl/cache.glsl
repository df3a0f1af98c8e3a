// The layout of a block of 32 tokens, in words of 4 bytes: first the keys of each KV head as [word][32 tokens], then
// the values of each as [32 tokens][word]. A row of a head takes whole words: a word holds two fp16 or bf16 values (an
// odd row ends with a zero); in Q8_0 and Q4_0 every 32 values take 8 or 4 words of codes, and one for the scale as F32.
// Types are numbered by cache_type() in attention.cpp.

const uint kF32 = 0u, kF16 = 1u, kBF16 = 2u, kQ8_0 = 3u, kQ4_0 = 4u;
// As a specialization constant: the type is in the push constants. Used where compiling costs more than branching.
const uint kAnyType = 255u;
const uint kBlockTokens = 32u;

// The values of a storage unit, and its words.
uint unit_values(uint type) { return type == kF32 ? 1u : type >= kQ8_0 ? 32u : 2u; }
uint unit_words(uint type) { return type == kQ8_0 ? 9u : type == kQ4_0 ? 5u : 1u; }
uint row_words(uint type, uint dim) {
  const uint values = unit_values(type);
  return (dim + values - 1u) / values * unit_words(type);
}
