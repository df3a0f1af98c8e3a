// Small matrices that a warp loads and multiplies.
#include "cuda_stand_in_language.h"
#include "ggml-like/half.h"
#include "tests/cuda_stand_in/access_checks.h"
#include "tests/cuda_stand_in/grid.h"

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

// Value `column` of the row of 8 fp16 values at `row`.
uint32_t half_at(const char* row, int column, const void* caller) {
  uint16_t value;
  check_access(row + 2 * column, sizeof value, Access::kRead, caller);
  std::memcpy(&value, row + 2 * column, sizeof value);
  return value;
}

}  // namespace

void load_matrices(uint32_t (&to)[4], const void* row, bool transposed, Place place) {
  const void* const caller = __builtin_return_address(0);
  check_alignment(row, 16, caller);
  if (!is_shared(row, 16)) fail(running_thread_name() + " loads a matrix from memory that is not shared");
  exchange(~0u, to_bits(row), place);
  const char* rows[warpSize];
  for (int i = 0; i < warpSize; ++i) rows[i] = from_bits<const char*>(exchanged(i));
  const int g = lane() / 4, t = lane() % 4;
  for (int m = 0; m < 4; ++m) {
    const uint32_t low = transposed ? half_at(rows[8 * m + 2 * t], g, caller) : half_at(rows[8 * m + g], 2 * t, caller);
    const uint32_t high =
        transposed ? half_at(rows[8 * m + 2 * t + 1], g, caller) : half_at(rows[8 * m + g], 2 * t + 1, caller);
    to[m] = low | high << 16;
  }
}

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
