// The weights of a case in any type: quantized floats, random legal bits with reasonable scales, and extremes.
#pragma once

#include <vector>

#include "tests/conformance/case.h"

namespace infer::test {

enum class WeightData { kFloats, kBits, kZero, kLargest, kDenormal, kLevel };  // kLevel: each 16 values all 1 or all -1

std::string_view name_of(WeightData data);
// The kinds that apply to the type: float types have no scales.
std::vector<WeightData> all_weight_data(DataType type);
Leaf make_weights(DataType type, const Shape& shape, WeightData data, Random& random);

// For each value of a row: its decoded value, and the sum of the magnitudes of its terms.
struct WeightTerms {
  std::vector<double> value, magnitude;
};
WeightTerms weight_terms(DataType type, const std::byte* row, int64_t k);

}  // namespace infer::test
