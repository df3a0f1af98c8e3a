// Products of small matrices by a warp.
#include "cuda_stand_in_language.h"
#include "ggml-like/half.h"

namespace cuda_stand_in {
namespace {

// The words that the lanes of a warp hold.
struct Words {
  uint32_t of[warpSize];
};
Words gather(uint32_t word, Place place) {
  exchange(~0u, word, place);
  Words all;
  for (int i = 0; i < warpSize; ++i) all.of[i] = static_cast<uint32_t>(exchanged(i));
  return all;
}

float half_of(uint32_t word, int which) { return infer::f16_to_f32(static_cast<uint16_t>(word >> (16 * which))); }

}  // namespace

void multiply_f16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], Place place) {
  Words a_words[4], b_words[2];
  for (int i = 0; i < 4; ++i) a_words[i] = gather(a[i], place);
  for (int i = 0; i < 2; ++i) b_words[i] = gather(b[i], place);
  const int g = lane() / 4, t = lane() % 4;
  for (int i = 0; i < 4; ++i) {
    const int lower = i / 2, column = 2 * t + i % 2;
    float sum = 0;
    for (int k = 0; k < 16; ++k) {
      const int holder = k % 8 / 2, half = k % 2, right = k / 8;
      sum += half_of(a_words[2 * right + lower].of[4 * g + holder], half) *
             half_of(b_words[right].of[4 * column + holder], half);
    }
    c[i] += sum;
  }
}

}  // namespace cuda_stand_in
