// What encoding costs: the error on rows as models have them, with and without importance.
#include "ggml-like/quant/encode.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

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

// Relative error of llama.cpp's encoders (ggml_quantize_chunk of release v0.5.0) on make_rows() of each distribution;
// the second list with make_importance() and weighted by it.
struct Reference {
  const char* type;
  double plain[5], weighted[5];
};
const Reference kReferences[] = {
    {"Q4_0", {0.08483, 0.10709, 0.11410, 0.14551, 0.12754}, {0.07085, 0.09176, 0.10097, 0.12497, 0.10881}},
    {"Q4_1", {0.07758, 0.09132, 0.09270, 0.10979, 0.10197}, {0.05595, 0.06599, 0.06831, 0.07249, 0.07298}},
    {"Q5_0", {0.04217, 0.05328, 0.05696, 0.08761, 0.06447}, {0.03510, 0.04619, 0.05016, 0.07581, 0.05584}},
    {"Q5_1", {0.03761, 0.04443, 0.04482, 0.05257, 0.04968}, {0.02705, 0.03201, 0.03296, 0.03579, 0.03491}},
    {"Q8_0", {0.00529, 0.00670, 0.00714, 0.01123, 0.00811}, {0.00521, 0.00655, 0.00705, 0.00987, 0.00764}},
    {"Q2_K", {0.29412, 0.34287, 0.34085, 0.24093, 0.37497}, {0.20081, 0.22433, 0.23195, 0.18990, 0.22898}},
    {"Q3_K", {0.14978, 0.17589, 0.18239, 0.14691, 0.19438}, {0.11968, 0.14432, 0.15083, 0.12451, 0.15372}},
    {"Q4_K", {0.07097, 0.08422, 0.08593, 0.09826, 0.09471}, {0.05702, 0.06772, 0.07073, 0.07550, 0.07530}},
    {"Q5_K", {0.03586, 0.04274, 0.04351, 0.05061, 0.04818}, {0.02961, 0.03556, 0.03691, 0.03953, 0.03902}},
    {"Q6_K", {0.01756, 0.02167, 0.02234, 0.03223, 0.02528}, {0.01446, 0.01855, 0.01935, 0.02676, 0.02122}},
    {"IQ4_NL", {0.07564, 0.08766, 0.09214, 0.12066, 0.10033}, {0.06397, 0.07431, 0.07878, 0.09805, 0.08275}},
    {"IQ4_XS", {0.07622, 0.08846, 0.09305, 0.12234, 0.10132}, {0.06484, 0.07545, 0.08055, 0.10137, 0.08418}},
    {"MXFP4", {0.11310, 0.12547, 0.12989, 0.16855, 0.14118}, {0.11364, 0.12744, 0.12969, 0.14194, 0.14089}},
};

}  // namespace

TEST_CASE("less error than llama.cpp leaves, for every type and distribution") {
  const std::vector<float> importance = test::make_importance();
  double plain = 0, weighted = 0;
  int n = 0;
  for (size_t k = 0; k < std::size(test::kDistributions); ++k) {
    CAPTURE(std::string(test::kDistributions[k]));
    const std::vector<float> x = test::make_rows(test::kDistributions[k]);
    for (const Reference& reference : kReferences) {
      CAPTURE(std::string(reference.type));
      const DataType type = find_type(std::string_view(reference.type))->type;
      const double without = error_of(type, x, nullptr) / reference.plain[k];
      const double with = error_of(type, x, &importance) / reference.weighted[k];
      CHECK(without < 0.998);
      CHECK(with < 0.994);
      plain += without;
      weighted += with;
      ++n;
    }
  }
  // As measured when written: just below these.
  CHECK(plain / n < 0.948);
  CHECK(weighted / n < 0.951);
}

TEST_CASE("what codes stand for is hardly smaller than the data") {
  // Least squares alone would leave <x, y> at 1 - error^2 of <x, x>; half of that is given back, of two bits all.
  const std::vector<float> importance = test::make_importance();
  for (const std::string_view distribution : test::kDistributions) {
    CAPTURE(std::string(distribution));
    const std::vector<float> x = test::make_rows(distribution);
    for (const Reference& reference : kReferences) {
      const DataType type = find_type(std::string_view(reference.type))->type;
      if (type == DataType::kMXFP4) continue;  // its scales are powers of two
      CAPTURE(std::string(reference.type));
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
        if (error < 0.05) continue;  // rounding of the F16 scales is as large
        const double lost = (1 - xy / xx) / (error * error);
        CHECK(std::abs(lost - (type == DataType::kQ2_K ? 0 : 0.5)) < 0.1);
      }
    }
  }
}

TEST_CASE("every type that chooses scales is encoded with importance") {
  const std::vector<float> x = test::make_rows("Laplace");
  const std::vector<float> importance = test::make_importance();
  for (const TypeTraits& t : all_types()) {
    if (!t.quantized || !t.from_float || t.type == DataType::kQ8_K) continue;
    CAPTURE(std::string(t.name));
    CHECK(std::any_of(std::begin(kReferences), std::end(kReferences), [&](auto& r) { return r.type == t.name; }));
    const std::vector<std::byte> plain = encode_rows(t.type, x, nullptr);
    // Without importance it is from_float.
    std::vector<std::byte> same(plain.size());
    t.from_float(x.data(), same.data(), static_cast<int64_t>(x.size()));
    CHECK(plain == same);
    CHECK(encode_rows(t.type, x, &importance) != plain);
    // Only the proportions count, and one that is 0 everywhere says nothing.
    std::vector<float> doubled = importance, zero(importance.size(), 0.0f);
    for (float& w : doubled) w *= 8;
    CHECK(encode_rows(t.type, x, &doubled) == encode_rows(t.type, x, &importance));
    if (t.type != DataType::kMXFP4) CHECK(encode_rows(t.type, x, &zero) == plain);
  }
}

TEST_CASE("importance from the smallest to the largest float") {
  const std::vector<float> x = test::make_rows("Gaussian");
  std::vector<float> importance(test::kRowValues);
  for (size_t i = 0; i < importance.size(); ++i) {
    const float values[] = {0, std::numeric_limits<float>::denorm_min(), 1, std::numeric_limits<float>::max()};
    importance[i] = values[(i / 7) % 4];
  }
  for (const Reference& reference : kReferences) {
    CAPTURE(std::string(reference.type));
    const DataType type = find_type(std::string_view(reference.type))->type;
    CHECK(error_of(type, x, nullptr) < 0.5);
    const std::vector<std::byte> blocks = encode_rows(type, x, &importance);
    std::vector<float> y(x.size());
    traits(type).to_float(blocks.data(), y.data(), static_cast<int64_t>(y.size()));
    CHECK(std::all_of(y.begin(), y.end(), [](float v) { return std::isfinite(v) && std::abs(v) < 1; }));
  }
}

TEST_CASE("values of the largest importance come out best") {
  const std::vector<float> x = test::make_rows("Gaussian");
  std::vector<float> importance(test::kRowValues, 1.0f);
  for (size_t i = 0; i < importance.size(); i += 8) importance[i] = 1000;
  for (const Reference& reference : kReferences) {
    if (std::string_view(reference.type) == "MXFP4") continue;  // two scales to choose from
    CAPTURE(std::string(reference.type));
    const DataType type = find_type(std::string_view(reference.type))->type;
    std::vector<float> only(test::kRowValues, 0.0f);
    for (size_t i = 0; i < only.size(); i += 8) only[i] = 1;
    const auto error_there = [&](const std::vector<float>* weights) {
      const std::vector<std::byte> blocks = encode_rows(type, x, weights);
      std::vector<float> y(x.size());
      traits(type).to_float(blocks.data(), y.data(), static_cast<int64_t>(y.size()));
      return test::relative_error(x, y, &only);
    };
    CHECK(error_there(&importance) < 0.9 * error_there(nullptr));
  }
}

TEST_CASE("types without scales are encoded as ever") {
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
