// Small matrices that a warp loads and multiplies.
#include <cstring>

#include "cuda_stand_in_language.h"
#include "ggml-like/half.h"
#include "tests/cuda_stand_in/access_checks.h"
#include "tests/cuda_stand_in/grid.h"

namespace cuda_stand_in {
namespace {

// The word of `bytes` bytes from value `column` on of the row of 8 fp16 values at `row`.
uint32_t halves_at(const char* row, int column, size_t bytes, const void* caller) {
  uint32_t word = 0;
  check_access(row + 2 * column, bytes, Access::kRead, caller);
  std::memcpy(&word, row + 2 * column, bytes);
  return word;
}

// What a lane holds of the factors, and gets of their product.
struct Parts {
  const uint32_t *a, *b;
  float sums[4];
};

// Unpacks the two 16-bit values of a lane's register into floats, `stride` apart.
void expand(uint32_t word, float* to, int stride) {
  to[0] = infer::f16_to_f32(static_cast<uint16_t>(word));
  to[stride] = infer::f16_to_f32(static_cast<uint16_t>(word >> 16));
}

void multiply_parts(const uint64_t (&given)[warpSize]) {
  float a[16][16], b[16][8];  // [row][k], [k][column]
  for (int lane = 0; lane < warpSize; ++lane) {
    const Parts& mine = *from_bits<const Parts*>(given[lane]);
    const int g = lane / 4, t = lane % 4;
    for (int right = 0; right < 2; ++right) {
      for (int lower = 0; lower < 2; ++lower)
        expand(mine.a[2 * right + lower], &a[8 * lower + g][8 * right + 2 * t], 1);
      expand(mine.b[right], &b[8 * right + 2 * t][g], 8);
    }
  }
  for (int row = 0; row < 16; ++row) {
    float sums[8] = {};
    for (int k = 0; k < 16; ++k) {
      for (int column = 0; column < 8; ++column) sums[column] += a[row][k] * b[k][column];
    }
    for (int column = 0; column < 8; ++column) {
      from_bits<Parts*>(given[row % 8 * 4 + column / 2])->sums[row / 8 * 2 + column % 2] = sums[column];
    }
  }
}

}  // namespace

void load_matrices(uint32_t (&to)[4], const void* row, bool transposed, Place place) {
  const void* const caller = __builtin_return_address(0);
  check_alignment(row, 16, caller);
  if (!is_shared(row, 16)) fail(running_thread_name() + " loads a matrix from memory that is not shared");
  exchange(~0u, to_bits(row), place);
  const int g = lane() / 4, t = lane() % 4;
  for (int m = 0; m < 4; ++m) {
    const auto row_at = [&](int i) { return from_bits<const char*>(exchanged(8 * m + i)); };
    to[m] = transposed ? halves_at(row_at(2 * t), g, 2, caller) | halves_at(row_at(2 * t + 1), g, 2, caller) << 16
                       : halves_at(row_at(g), 2 * t, 4, caller);
  }
}

void multiply_f16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], Place place) {
  Parts mine = {a, b, {}};
  exchange_all(to_bits(&mine), multiply_parts, place);
  for (int i = 0; i < 4; ++i) c[i] += mine.sums[i];
}

}  // namespace cuda_stand_in
