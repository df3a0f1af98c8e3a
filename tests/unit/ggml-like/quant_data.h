// Rows of weights as models have them: the same on every machine, for recorded errors of quantization.
#pragma once

#include <cmath>
#include <string_view>
#include <vector>

#include "tests/support/quant_reference.h"

namespace infer::test {

inline constexpr std::string_view kDistributions[] = {"Gaussian", "Laplace", "Student t(4)", "outliers", "channels"};
inline constexpr int kRowValues = 1024;
inline constexpr int kRows = 64;

// kRows rows of kRowValues values. "outliers": one value in a hundred is twenty times larger; "channels": each column
// has a scale of its own.
inline std::vector<float> make_rows(std::string_view distribution) {
  Random random(20);
  constexpr size_t kN = size_t{kRows} * kRowValues;
  const std::vector<float> a = random.normals(kN);
  std::vector<float> x = a;
  if (distribution == "Laplace") {
    for (float& v : x) {
      const double u = random.uniform() - 0.5;
      v = static_cast<float>((u < 0 ? 1 : -1) * std::log(1 - 2 * std::abs(u)));
    }
  } else if (distribution == "Student t(4)") {
    const std::vector<float> b = random.normals(kN * 4);
    for (size_t i = 0; i < kN; ++i) {
      double squares = 0;
      for (size_t k = 0; k < 4; ++k) squares += static_cast<double>(b[4 * i + k]) * b[4 * i + k];
      x[i] = static_cast<float>(a[i] / std::sqrt(squares / 4));
    }
  } else if (distribution == "outliers") {
    for (float& v : x) v *= random.uniform() < 0.01 ? 20.0f : 1.0f;
  } else if (distribution == "channels") {
    const std::vector<float> scales = random.normals(kRowValues);
    for (size_t i = 0; i < kN; ++i) x[i] *= std::exp(0.7f * scales[i % kRowValues]);
  }
  for (float& v : x) v *= 0.02f;
  return x;
}

// One weight per column, as measured activations would give.
inline std::vector<float> make_importance() {
  std::vector<float> weights = Random(21).normals(kRowValues);
  for (float& w : weights) w = std::exp(1.5f * w);
  return weights;
}

// Root of the sum of w * (x - y)^2 over the sum of w * x^2.
inline double relative_error(const std::vector<float>& x, const std::vector<float>& y,
                             const std::vector<float>* importance) {
  double error = 0, square = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double w = importance ? (*importance)[i % kRowValues] : 1;
    const double off = static_cast<double>(x[i]) - y[i];
    error += w * off * off;
    square += w * static_cast<double>(x[i]) * x[i];
  }
  return std::sqrt(error / square);
}

}  // namespace infer::test
