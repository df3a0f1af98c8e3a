// Weights of a case in any type: quantized floats, random legal bits with sane scales, and the extremes.
#pragma once

#include <vector>

#include "tests/conformance/case.h"

namespace infer::test {

enum class WeightData { kFloats, kBits, kZero, kLargest, kDenormal, kLevel };  // kLevel: 16 by 16 all 1 or all -1

std::string_view name_of(WeightData data);
// Those that the type has: float types have no scales.
std::vector<WeightData> all_weight_data(DataType type);
Leaf make_weights(DataType type, const Shape& shape, WeightData data, Random& random);

// Of each value of a row: what it decodes to, and the sum of the magnitudes of the terms it is made of.
struct WeightTerms {
  std::vector<double> value, magnitude;
};
WeightTerms weight_terms(DataType type, const std::byte* row, int64_t k);

}  // namespace infer::test
