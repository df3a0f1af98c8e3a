// The float kernels of every level against double, over the whole range of floats: errors stay below recorded limits,
// infinities and NaN are handled, and all levels give the same bits.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "backends/cpu/isa.h"
#include "ggml-like/half.h"
#include "ggml-like/quant/activation.h"
#include "tests/support/quant_reference.h"

using namespace infer;
using namespace infer::cpu;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<const KernelTable*> tables() {
  std::vector<const KernelTable*> all;
  for (const Level& level : levels()) {
    if (level.runs_here) all.push_back(level.kernels);
  }
  return all;
}

// Every `step`-th float of each sign, including denormals, and the floats around 0, 1 and the ends of exp's range.
std::vector<float> sweep(uint32_t step) {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < 0x7f800000u; bits += step) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    x.push_back(-x.back());
  }
  for (const float center : {0.25f, 1.0f, 4.0f, 8.0f, 87.3f, 88.7f, 103.9f}) {
    float v = center;
    for (int i = 0; i < 200; ++i) {
      x.push_back(v);
      x.push_back(-v);
      v = std::nextafter(v, i % 2 ? kInf : 0.0f) * (1 + 1e-4f * static_cast<float>(i % 7));
    }
  }
  return x;
}

std::vector<float> apply(const KernelTable& k, UnaryKind kind, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  k.unary(kind, x.data(), y.data(), static_cast<int64_t>(x.size()));
  return y;
}

bool same_bits(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

double ulp(double x) {
  const int exponent = std::max(std::ilogb(x == 0 ? 1e-45 : std::abs(x)), -126);
  return std::ldexp(1.0, exponent - 23);
}

struct Errors {
  double ulps = 0, absolute = 0;  // the largest errors
  float at_ulps = 0, at_absolute = 0;
};

// For all x in [low, high].
Errors errors_of(UnaryKind kind, double low, double high, const std::function<double(double)>& exact) {
  static const std::vector<float> x = sweep(40009);
  const std::vector<float> y = apply(choose_kernels("scalar"), kind, x);
  Errors e;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!(x[i] >= low && x[i] <= high)) continue;
    const double expected = exact(x[i]), off = std::abs(y[i] - expected);
    if (std::abs(expected) > std::numeric_limits<float>::max()) continue;
    if (!(off <= e.absolute)) e.absolute = off, e.at_absolute = x[i];
    if (!(off / ulp(expected) <= e.ulps)) e.ulps = off / ulp(expected), e.at_ulps = x[i];
  }
  return e;
}

}  // namespace

TEST_CASE("float kernels: all levels give the bits of the scalar level, for every kind, over all floats") {
  std::vector<float> x = sweep(100003);
  for (const float special : {0.0f, -0.0f, kInf, -kInf, kNan, -kNan}) x.push_back(special);
  for (int kind = 0; kind <= static_cast<int>(UnaryKind::kSoftplus); ++kind) {
    const std::vector<float> expected = apply(*tables()[0], static_cast<UnaryKind>(kind), x);
    for (const KernelTable* k : tables()) {
      const std::vector<float> found = apply(*k, static_cast<UnaryKind>(kind), x);
      size_t differ = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        if (same_bits(expected[i], found[i])) continue;
        if (++differ == 1) {
          FAIL_CHECK(k->level, " ", unary_name(static_cast<UnaryKind>(kind)), " of ", x[i], ": ", expected[i],
                     " expected, ", found[i], " found");
        }
      }
    }
  }
}

TEST_CASE("float kernels: recorded errors against double") {
  const auto silu = [](double x) { return x / (1 + std::exp(-x)); };
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto gelu_tanh = [](double x) {
    return 0.5 * x * (1 + std::tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
  };
  const auto gelu_erf = [](double x) { return 0.5 * x * (1 + std::erf(x * 0.70710678118654752)); };
  const auto gelu_quick = [](double x) { return x / (1 + std::exp(-1.702 * x)); };
  const auto softplus = [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); };
  const auto check = [](const std::string& what, const Errors& e, double ulps, double absolute) {
    CAPTURE(what);
    CAPTURE(e.at_ulps);
    CAPTURE(e.at_absolute);
    MESSAGE(what << ": " << e.ulps << " ulp, " << e.absolute << " absolute");
    CHECK(e.ulps <= ulps);
    CHECK(e.absolute <= absolute);
  };
  // For x far below zero sigmoid(x) is exp(x) after one division, so it shows the error of exp.
  check("sigmoid, -87 .. 90", errors_of(UnaryKind::kSigmoid, -87, 90, sigmoid), 2.5, 1e-7);
  check("silu, -80 .. 3e38", errors_of(UnaryKind::kSilu, -80, 3e38, silu), 2.5, 1e31);
  check("tanh", errors_of(UnaryKind::kTanh, -4e38, 4e38, [](double x) { return std::tanh(x); }), 1.5, 7e-8);
  check("gelu_tanh, 0 .. 1e19", errors_of(UnaryKind::kGeluTanh, 0, 1e19, gelu_tanh), 2.5, 6e11);
  check("gelu_erf, 0 .. 1e19", errors_of(UnaryKind::kGeluErf, 0, 1e19, gelu_erf), 2.5, 6e11);
  check("gelu_quick, 0 .. 1e37", errors_of(UnaryKind::kGeluQuick, 0, 1e37, gelu_quick), 2.5, 4e29);
  check("softplus, -87 .. 3e38", errors_of(UnaryKind::kSoftplus, -87, 3e38, softplus), 2.5, 1e31);
  // Only the absolute error is small where results approach zero, and in gelu below zero, where 1 + tanh and 1 + erf
  // cancel.
  const double any = std::numeric_limits<double>::infinity();
  check("sigmoid below -88", errors_of(UnaryKind::kSigmoid, -4e38, -88, sigmoid), any, 4e-39);
  check("silu below -80", errors_of(UnaryKind::kSilu, -4e38, -80, silu), any, 3e-37);
  check("gelu_tanh below 0", errors_of(UnaryKind::kGeluTanh, -1e19, 0, gelu_tanh), any, 1e-7);
  check("gelu_erf below 0", errors_of(UnaryKind::kGeluErf, -1e19, 0, gelu_erf), any, 1e-7);
}

TEST_CASE("float kernels: infinities and NaN") {
  struct Expected {
    UnaryKind kind;
    float x, y;
  };
  const Expected list[] = {
      {UnaryKind::kSigmoid, kInf, 1},
      {UnaryKind::kSigmoid, -kInf, 0},
      {UnaryKind::kSigmoid, kNan, kNan},
      {UnaryKind::kTanh, kInf, 1},
      {UnaryKind::kTanh, -kInf, -1},
      {UnaryKind::kTanh, kNan, kNan},
      {UnaryKind::kSilu, kInf, kInf},
      {UnaryKind::kSilu, -kInf, kNan},
      {UnaryKind::kSilu, kNan, kNan},
      {UnaryKind::kGeluTanh, kInf, kInf},
      {UnaryKind::kGeluTanh, kNan, kNan},
      {UnaryKind::kGeluErf, kInf, kInf},
      {UnaryKind::kGeluErf, kNan, kNan},
      {UnaryKind::kRelu, kInf, kInf},
      {UnaryKind::kRelu, -kInf, 0},
      {UnaryKind::kRelu, kNan, kNan},
      {UnaryKind::kReluSquared, -kInf, 0},
      {UnaryKind::kReluSquared, kNan, kNan},
      {UnaryKind::kSilu, 0, 0},
      {UnaryKind::kTanh, 0, 0},
      {UnaryKind::kSigmoid, 0, 0.5f},
      {UnaryKind::kGeluQuick, kInf, kInf},
      {UnaryKind::kGeluQuick, kNan, kNan},
      {UnaryKind::kSoftplus, kInf, kInf},
      {UnaryKind::kSoftplus, -kInf, 0},
      {UnaryKind::kSoftplus, kNan, kNan},
  };
  for (const KernelTable* k : tables()) {
    for (const Expected& e : list) {
      const float y = apply(*k, e.kind, {e.x})[0];
      CAPTURE(k->level);
      CAPTURE(unary_name(e.kind));
      CAPTURE(e.x);
      CHECK((std::isnan(e.y) ? std::isnan(y) : y == e.y));
    }
  }
}

TEST_CASE("float kernels: softmax adds up to 1, and log-sum-exp is close to double") {
  test::Random random(1);
  for (const KernelTable* k : tables()) {
    for (const int n : {1, 2, 15, 16, 17, 100, 1000}) {
      std::vector<float> x = random.normals(static_cast<size_t>(n)), y(x.size());
      for (float& v : x) v *= 20;
      k->softmax(x.data(), y.data(), n);
      const double best = *std::max_element(x.begin(), x.end());
      double sum = 0, total = 0;
      for (const float v : x) sum += std::exp(v - best);
      for (int i = 0; i < n; ++i) {
        total += y[i];
        CHECK(std::abs(y[i] - std::exp(x[i] - best) / sum) <= (1e-6 + 0x1p-24 * (best - x[i])) * y[i] + 1e-37);
      }
      CHECK(std::abs(total - 1) < 1e-5);
      float maximum = 0, rest = 0;
      k->max_and_sum(x.data(), n, &maximum, &rest);
      CHECK(maximum == static_cast<float>(best));
      CHECK(std::abs(rest - sum) <= 1e-6 * sum);
    }
    std::vector<float> masked(40, -kInf), y(40);
    masked[17] = 3;
    k->softmax(masked.data(), y.data(), 40);
    for (int i = 0; i < 40; ++i) CHECK(y[i] == (i == 17 ? 1.0f : 0.0f));
  }
}

TEST_CASE("float kernels: quantized activations equal the definition byte for byte") {
  test::Random random(2);
  for (int repeat = 0; repeat < 400; ++repeat) {
    std::vector<float> x = random.normals(512);
    const int what = repeat % 10;
    for (size_t i = 0; i < x.size(); ++i) {
      if (what == 1) x[i] *= 1e30f;
      if (what == 2) x[i] *= 1e-38f;
      if (what == 3) x[i] *= 0x1p-141f;
      if (what == 4) x[i] = i < 256 ? 0.0f : x[i];
      if (what == 5) x[i] = std::round(x[i] * 4) / 8;  // multiples of 1/8 that give ties in rounding
      if (what == 6) x[i] = std::bit_cast<float>(static_cast<uint32_t>(random.next()));
      if (what == 7) x[i] = i == 300 ? kInf : x[i];
      if (what == 8) x[i] = i == 17 ? -kNan : x[i];
    }
    if (what == 5) x[0] = 127.0f / 8;
    std::vector<Activation256> large(2), expected_large(2);
    std::vector<Activation32> small(16), expected_small(16);
    quantize_activations(x.data(), expected_large.data(), 2);
    quantize_activations(x.data(), expected_small.data(), 16);
    for (const KernelTable* k : tables()) {
      CAPTURE(k->level);
      CAPTURE(what);
      // Into zeroed blocks, because kernels do not write the padding.
      std::memset(static_cast<void*>(large.data()), 0, large.size() * sizeof large[0]);
      std::memset(static_cast<void*>(small.data()), 0, small.size() * sizeof small[0]);
      k->quantize256(x.data(), large.data(), 1, 2);
      k->quantize32(x.data(), small.data(), 1, 16);
      CHECK(std::memcmp(large.data(), expected_large.data(), large.size() * sizeof large[0]) == 0);
      CHECK(std::memcmp(small.data(), expected_small.data(), small.size() * sizeof small[0]) == 0);
    }
  }
}

TEST_CASE("float kernels: conversions to fp16 equal half.h") {
  std::vector<float> x = sweep(200003);
  for (const float special : {65504.0f, 65519.9f, 65520.0f, 0x1p-24f, 0x1p-25f, 0x1.8p-25f, kInf, -kInf})
    x.push_back(special);
  for (const KernelTable* k : tables()) {
    std::vector<uint16_t> y(x.size());
    k->to_f16(x.data(), y.data(), static_cast<int64_t>(x.size()));
    size_t wrong = 0;
    for (size_t i = 0; i < x.size(); ++i) wrong += y[i] != f32_to_f16(x[i]);
    CAPTURE(k->level);
    CHECK(wrong == 0);
    const float nan = kNan;
    uint16_t half = 0;
    k->to_f16(&nan, &half, 1);
    CHECK(std::isnan(f16_to_f32(half)));
  }
}
