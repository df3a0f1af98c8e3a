// Chooses scales, entries and signs of a super-block whose values come from a codebook (codebooks_data.h), by weighted
// least squares as in fit.h: candidate scales for each sub-block, then the integers that represent them and the F16
// scale above in turn. Rounding each value of a group to a level rarely gives an entry, so the entries nearest to the
// rounded group are tried.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "ggml-like/quant/fit.h"

namespace infer {

// The entries of a codebook as floats, and for every group of levels the entries nearest to it. Constant after
// construction, which takes about a tenth of a second.
class Codebook {
 public:
  // `levels`: the values that occur in entries, ascending.
  template <typename Entry, size_t kEntries>
  Codebook(const std::array<Entry, kEntries>& entries, std::initializer_list<int> levels)
      : Codebook(sizeof(Entry), std::vector<uint64_t>(entries.begin(), entries.end()), levels) {}

  int group() const { return group_; }  // values in an entry: 8 or 4
  std::span<const int> levels() const { return levels_; }
  const float* values(int entry) const { return values_.data() + static_cast<size_t>(entry) * group_; }
  // `point`: the indices of the levels as digits in base levels().size(), least significant first.
  std::span<const uint16_t> nearest(int point) const {
    return std::span(nearest_).subspan(static_cast<size_t>(point) * kNearest, kNearest);
  }

 private:
  static constexpr int kNearest = 12;

  Codebook(int group, const std::vector<uint64_t>& entries, std::initializer_list<int> levels);

  int group_;
  std::vector<int> levels_;
  std::vector<float> values_;      // [entries][group]
  std::vector<uint16_t> nearest_;  // [points][kNearest], ascending distance
};

enum class Signs {
  kNone,  // the entries have signs
  kEven,  // an even number of each 8 values is negative
  kFree,
};

struct CodebookFormat {
  const Codebook& book;
  int sub;        // values that share a scale: 16 or 32
  int max_scale;  // the largest s of the scales 2 s + 1
  float unit;     // x ~ unit * d * (2 s + 1) * value
  Signs signs;
  int shift_group = 0;  // IQ1: values that share the choice between entry - 7 and entry - 9; otherwise 0
};

struct CodebookFit {
  uint16_t d;
  uint8_t scale[16];   // s of each sub-block
  uint16_t entry[64];  // of each group
  uint8_t signs[32];   // of each 8 values, a bit for each negative one
  bool minus[32];      // IQ1, of each 8 values: -1 was added
};

CodebookFit fit_codebook(const float* x, const float* importance, const CodebookFormat& format);

}  // namespace infer
