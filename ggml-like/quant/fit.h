// How from_float chooses scales: least squares over a fixed list of candidate scales, each value weighted by its own
// magnitude plus the block's root mean square, since large weights matter more to the product. All in double, so that
// no finite input overflows or divides by zero; no library function but sqrt, so the same everywhere.
#pragma once

#include <cstdint>

namespace infer {

// The integers a code can stand for: low..high, or 16 ascending values of a table.
class Grid {
 public:
  constexpr Grid(int low, int high) : low_(low), high_(high) {}
  // REQUIRES values within -128..127, ascending.
  constexpr explicit Grid(const int8_t (&table)[16]);

  int low() const { return low_; }
  int high() const { return high_; }
  // Distance of the outermost values: how far a scale may move before one more value is cut off.
  int step() const { return table_ ? table_[15] - table_[14] : 1; }
  int nearest(double v) const;  // code, 0 stands for low()
  int value(int code) const { return table_ ? table_[code] : low_ + code; }

 private:
  int low_;
  int high_;
  const int8_t* table_ = nullptr;
  uint8_t nearest_[512] = {};  // code nearest to low + k / 2 .. low + (k + 1) / 2: midpoints are multiples of 1/2
};

bool all_finite(const float* x, int n);

// Nearest F16 of a scale, cut off at the largest finite one.
uint16_t scale_to_f16(double scale);
inline constexpr uint16_t kF16NaN = 0x7e00;

// Blocks of 32. x ~ d * grid value.
struct Fit32 {
  uint16_t d;
  uint16_t m;  // x ~ d * code + m, fit_min32 only
  uint8_t code[32];
};
Fit32 fit_scale32(const float* x, const Grid& grid);
Fit32 fit_min32(const float* x, int max_code);

// Super-blocks. x ~ d * scale[s] * grid value, or d * scale[s] * code - dmin * min[s].
struct Fit256 {
  uint16_t d;
  uint16_t dmin;
  int16_t scale[16];
  int16_t min[16];
  uint8_t code[256];
};
Fit256 fit_scale256(const float* x, int sub_block, const Grid& grid, int min_scale, int max_scale);
Fit256 fit_min256(const float* x, int sub_block, int max_code, int max_scale);

constexpr Grid::Grid(const int8_t (&table)[16]) : low_(table[0]), high_(table[15]), table_(table) {
  // The last entry is for a value a rounding error below high().
  for (int k = 0, code = 0; k <= 2 * (high_ - low_); ++k) {
    // The interval above low + k / 2 belongs to the next code once it starts at or above the midpoint.
    while (code < 15 && 2 * low_ + k >= table[code] + table[code + 1]) ++code;
    nearest_[k] = static_cast<uint8_t>(code);
  }
}

}  // namespace infer
