#include "tests/conformance/weights.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "ggml-like/error.h"
#include "ggml-like/half.h"
#include "tests/support/quant_reference.h"

namespace infer::test {
namespace {

// Its four nibbles are the upper ones of four bytes.
void set_scale_of_iq1_m(std::byte* block, uint16_t half) {
  for (int j = 0; j < 4; ++j) {
    std::byte& b = block[49 + 2 * j];
    b = (b & std::byte{15}) | static_cast<std::byte>((half >> (4 * j) & 15) << 4);
  }
}

void set_scales(DataType type, std::byte* block, WeightData data, Random& random) {
  if (type == DataType::kMXFP4) {
    const int e = data == WeightData::kLargest    ? 240
                  : data == WeightData::kDenormal ? static_cast<int>(random.next() % 3)
                                                  : 120 + static_cast<int>(random.next() % 12);
    block[0] = static_cast<std::byte>(e);
    return;
  }
  if (type == DataType::kNVFP4) {
    for (int s = 0; s < 4; ++s) {
      const uint64_t scale = data == WeightData::kLargest    ? 0x7e
                             : data == WeightData::kDenormal ? random.next() % 8
                                                             : 0x18 + random.next() % 32;
      block[s] = static_cast<std::byte>(scale);
    }
    return;
  }
  if (type == DataType::kQ8_K) {
    const float d = static_cast<float>(random.uniform() * 0.01);
    std::memcpy(block, &d, sizeof d);
    return;
  }
  const auto* record = std::find_if(std::begin(kQuantRecords), std::end(kQuantRecords),
                                    [&](const QuantRecord& r) { return r.name == traits(type).name; });
  CHECK_INTERNAL(record != std::end(kQuantRecords));
  for (const int at : {record->d, record->m}) {
    if (at < 0 && type != DataType::kIQ1_M) continue;
    uint16_t half = f32_to_f16(static_cast<float>((random.uniform() - 0.3) * 0.05));
    if (data == WeightData::kLargest) half = static_cast<uint16_t>(0x7bff | (random.next() & 0x8000));
    if (data == WeightData::kDenormal) half = static_cast<uint16_t>(random.next() & 0x83ff);
    if (type == DataType::kIQ1_M) set_scale_of_iq1_m(block, half);
    else std::memcpy(block + at, &half, sizeof half);
  }
}

}  // namespace

std::string_view name_of(WeightData data) {
  constexpr std::string_view kNames[] = {"floats", "bits", "zero", "largest", "denormal", "level"};
  return kNames[static_cast<size_t>(data)];
}

std::vector<WeightData> all_weight_data(DataType type) {
  if (!traits(type).quantized) return {WeightData::kFloats, WeightData::kZero};
  return {WeightData::kFloats, WeightData::kBits, WeightData::kZero, WeightData::kLargest, WeightData::kDenormal};
}

Leaf make_weights(DataType type, const Shape& shape, WeightData data, Random& random) {
  Leaf leaf = weight_leaf(type, shape);
  const TypeTraits& t = traits(type);
  const int64_t n = shape.elements();
  if (data == WeightData::kZero) return leaf;
  if (data == WeightData::kFloats || !t.quantized) {
    t.from_float(random.normals(static_cast<size_t>(n)).data(), leaf.data.data(), n);
    return leaf;
  }
  if (data == WeightData::kLevel) {
    std::vector<float> values(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) values[i] = i % 16 == 0 ? (random.next() % 2 ? 1.0f : -1.0f) : values[i - 1];
    t.from_float(values.data(), leaf.data.data(), n);
    return leaf;
  }
  for (std::byte& b : leaf.data) b = static_cast<std::byte>(random.next());
  for (size_t at = 0; at < leaf.data.size(); at += t.type_size) set_scales(type, leaf.data.data() + at, data, random);
  return leaf;
}

WeightTerms weight_terms(DataType type, const std::byte* row, int64_t k) {
  const TypeTraits& t = traits(type);
  WeightTerms terms;
  if (!t.quantized) {
    std::vector<float> values(static_cast<size_t>(k));
    t.to_float(row, values.data(), k);
    terms.value.assign(values.begin(), values.end());
    for (const double v : terms.value) terms.magnitude.push_back(std::abs(v));
    return terms;
  }
  for (int64_t i = 0; i < k; i += t.block_size, row += t.type_size) {
    const Fields f = take_apart(t.name, row);
    for (int j = 0; j < f.n; ++j) {
      terms.value.push_back(f.value(j));
      terms.magnitude.push_back(std::abs(f.scaled(j)) + std::abs(f.offset(j)));
    }
  }
  return terms;
}

}  // namespace infer::test
