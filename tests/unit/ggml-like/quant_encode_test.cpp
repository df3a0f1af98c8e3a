// The error of encoding, on rows like those of models, with and without importance.
#include "ggml-like/quant/encode.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "tests/support/quant_reference.h"
#include "tests/unit/ggml-like/quant_data.h"

using namespace infer;

namespace {

std::vector<std::byte> encode_rows(DataType type, const std::vector<float>& x, const std::vector<float>* importance) {
  const size_t bytes = row_bytes(type, test::kRowValues);
  std::vector<std::byte> blocks(bytes * test::kRows);
  for (int r = 0; r < test::kRows; ++r) {
    encode_blocks(type, x.data() + r * test::kRowValues, importance ? importance->data() : nullptr,
                  blocks.data() + static_cast<size_t>(r) * bytes, test::kRowValues);
  }
  return blocks;
}

double error_of(DataType type, const std::vector<float>& x, const std::vector<float>* importance) {
  const std::vector<std::byte> blocks = encode_rows(type, x, importance);
  std::vector<float> y(x.size());
  traits(type).to_float(blocks.data(), y.data(), static_cast<int64_t>(y.size()));
  return test::relative_error(x, y, importance);
}

// Whether scales are too coarse to follow the data closely: powers of two, or 8-bit floats.
bool has_coarse_scales(DataType type) { return type == DataType::kMXFP4 || type == DataType::kNVFP4; }

// Whether a scale is shared by too many values to follow the importance of a few.
bool has_wide_blocks(DataType type) {
  return type == DataType::kQ1_0 || type == DataType::kTQ1_0 || type == DataType::kTQ2_0;
}

// The part of the loss of least squares that remains (Projection in quant/fit_search.h).
double remaining_loss(DataType type) {
  if (type == DataType::kQ2_K) return 0;
  return has_wide_blocks(type) || type == DataType::kQ2_0 ? 1 : 0.5;
}

}  // namespace

TEST_CASE("the error is smaller than llama.cpp's, for every type and distribution") {
  const std::vector<float> importance = test::make_importance();
  double plain = 0, weighted = 0;
  int n = 0;
  for (size_t k = 0; k < std::size(test::kDistributions); ++k) {
    CAPTURE(std::string(test::kDistributions[k]));
    const std::vector<float> x = test::make_rows(test::kDistributions[k]);
    for (const test::QuantRecord& reference : test::kQuantRecords) {
      if (!reference.has_encoder()) continue;
      CAPTURE(reference.name);
      const DataType type = find_type(reference.name)->type;
      const double without = error_of(type, x, nullptr) / reference.plain[k];
      const double with = error_of(type, x, &importance) / reference.weighted[k];
      // With one sign per value the best scale is simply the mean.
      CHECK(without < (type == DataType::kQ1_0 ? 1.0001 : 0.998));
      CHECK(with < 0.994);
      plain += without;
      weighted += with;
      ++n;
    }
  }
  // The measured values were just below these.
  CHECK(plain / n < 0.889);
  CHECK(weighted / n < 0.881);
}

TEST_CASE("decoded values are hardly smaller than the data") {
  // Least squares alone would make <x, y> (1 - error^2) <x, x>. Half of the loss is restored, in Q2_K all of it.
  const std::vector<float> importance = test::make_importance();
  for (const std::string_view distribution : test::kDistributions) {
    CAPTURE(std::string(distribution));
    const std::vector<float> x = test::make_rows(distribution);
    for (const test::QuantRecord& reference : test::kQuantRecords) {
      const DataType type = find_type(reference.name)->type;
      if (!reference.has_encoder() || has_coarse_scales(type)) continue;
      CAPTURE(reference.name);
      for (const auto* weights : {static_cast<const std::vector<float>*>(nullptr), &importance}) {
        const std::vector<std::byte> blocks = encode_rows(type, x, weights);
        std::vector<float> y(x.size());
        traits(type).to_float(blocks.data(), y.data(), static_cast<int64_t>(y.size()));
        double xx = 0, xy = 0;
        for (size_t i = 0; i < x.size(); ++i) {
          const double w = weights ? (*weights)[i % test::kRowValues] : 1;
          xx += w * x[i] * x[i];
          xy += w * x[i] * y[i];
        }
        const double error = test::relative_error(x, y, weights);
        if (error < 0.05) continue;  // the rounding of the F16 scales is as large
        const double lost = (1 - xy / xx) / (error * error);
        CHECK(std::abs(lost - remaining_loss(type)) < 0.1);
      }
    }
  }
}

TEST_CASE("every type that chooses scales is encoded with importance") {
  const std::vector<float> x = test::make_rows("Laplace");
  const std::vector<float> importance = test::make_importance();
  for (const TypeTraits& t : all_types()) {
    if (!t.encode) continue;
    CAPTURE(std::string(t.name));
    CHECK(std::any_of(std::begin(test::kQuantRecords), std::end(test::kQuantRecords),
                      [&](const auto& r) { return r.name == t.name && r.has_encoder(); }));
    const std::vector<std::byte> plain = encode_rows(t.type, x, nullptr);
    // Without importance it is from_float.
    std::vector<std::byte> same(plain.size());
    t.from_float(x.data(), same.data(), static_cast<int64_t>(x.size()));
    CHECK(plain == same);
    CHECK(encode_rows(t.type, x, &importance) != plain);
    // Only ratios of importance matter; an importance of 0 everywhere has no effect.
    std::vector<float> doubled = importance, zero(importance.size(), 0.0f);
    for (float& w : doubled) w *= 8;
    CHECK(encode_rows(t.type, x, &doubled) == encode_rows(t.type, x, &importance));
    if (!has_coarse_scales(t.type)) CHECK(encode_rows(t.type, x, &zero) == plain);
  }
}

TEST_CASE("importance from the smallest to the largest float") {
  const std::vector<float> x = test::make_rows("Gaussian");
  std::vector<float> importance(test::kRowValues);
  for (size_t i = 0; i < importance.size(); ++i) {
    const float values[] = {0, std::numeric_limits<float>::denorm_min(), 1, std::numeric_limits<float>::max()};
    importance[i] = values[(i / 7) % 4];
  }
  for (const test::QuantRecord& reference : test::kQuantRecords) {
    if (!reference.has_encoder()) continue;
    CAPTURE(reference.name);
    const DataType type = find_type(reference.name)->type;
    CHECK(error_of(type, x, nullptr) < 0.6);
    const std::vector<std::byte> blocks = encode_rows(type, x, &importance);
    std::vector<float> y(x.size());
    traits(type).to_float(blocks.data(), y.data(), static_cast<int64_t>(y.size()));
    CHECK(std::all_of(y.begin(), y.end(), [](float v) { return std::isfinite(v) && std::abs(v) < 1; }));
  }
}

TEST_CASE("values with the largest importance have the smallest error") {
  const std::vector<float> x = test::make_rows("Gaussian");
  std::vector<float> importance(test::kRowValues, 1.0f);
  for (size_t i = 0; i < importance.size(); i += 8) importance[i] = 1000;
  for (const test::QuantRecord& reference : test::kQuantRecords) {
    const DataType type = find_type(reference.name)->type;
    if (!reference.has_encoder() || type == DataType::kMXFP4) continue;  // MXFP4 can choose only between two scales
    CAPTURE(reference.name);
    std::vector<float> only(test::kRowValues, 0.0f);
    for (size_t i = 0; i < only.size(); i += 8) only[i] = 1;
    const auto error_there = [&](const std::vector<float>* weights) {
      const std::vector<std::byte> blocks = encode_rows(type, x, weights);
      std::vector<float> y(x.size());
      traits(type).to_float(blocks.data(), y.data(), static_cast<int64_t>(y.size()));
      return test::relative_error(x, y, &only);
    };
    CHECK(error_there(&importance) < (has_wide_blocks(type) ? 0.98 : 0.9) * error_there(nullptr));
  }
}

TEST_CASE("importance has no effect on types without scales") {
  const std::vector<float> x = test::make_rows("Gaussian");
  for (const DataType type : {DataType::kF32, DataType::kF16, DataType::kBF16, DataType::kQ8_K}) {
    const size_t bytes = row_bytes(type, static_cast<int64_t>(x.size()));
    std::vector<uint64_t> a(bytes / 8 + 1), b(bytes / 8 + 1);
    const std::vector<float> importance(x.size(), 1.0f);
    encode_blocks(type, x.data(), importance.data(), a.data(), static_cast<int64_t>(x.size()));
    traits(type).from_float(x.data(), b.data(), static_cast<int64_t>(x.size()));
    CHECK(a == b);
  }
}
