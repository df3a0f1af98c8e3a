// Decoding and encoding of every quantized format.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>

#include "ggml-like/data_type.h"
#include "ggml-like/error.h"
#include "ggml-like/gguf.h"
#include "ggml-like/half.h"
#include "tests/support/quant_reference.h"
#include "tests/support/skip.h"

using namespace infer;
using infer::test::block_buffer;

namespace {

constexpr float kMax = std::numeric_limits<float>::max();

std::vector<const TypeTraits*> quantized_types() {
  std::vector<const TypeTraits*> types;
  for (const TypeTraits& t : all_types()) {
    if (t.quantized && t.to_float != nullptr) types.push_back(&t);
  }
  return types;
}

std::vector<float> encode_decode(const TypeTraits& t, const std::vector<float>& x) {
  const int64_t n = static_cast<int64_t>(x.size());
  std::vector<uint64_t> blocks = block_buffer(t, n);
  t.from_float(x.data(), blocks.data(), n);
  std::vector<float> y(x.size());
  t.to_float(blocks.data(), y.data(), n);
  return y;
}

bool same_value(float a, double exact) {
  const float b = static_cast<float>(exact);
  return a == b || (std::isnan(a) && std::isnan(b));
}

// The number of values for which the library and the slow decoder differ.
int64_t count_differences(const TypeTraits& t, const void* blocks, int64_t n) {
  std::vector<float> values(static_cast<size_t>(n));
  t.to_float(blocks, values.data(), n);
  int64_t wrong = 0;
  for (int64_t k = 0; k < n / t.block_size; ++k) {
    const test::Fields f = test::take_apart(t.name, static_cast<const uint8_t*>(blocks) + k * t.type_size);
    for (int i = 0; i < f.n; ++i) wrong += !same_value(values[k * t.block_size + i], f.value(i));
  }
  return wrong;
}

double rmse(const std::vector<float>& x, const std::vector<float>& y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += (static_cast<double>(x[i]) - y[i]) * (static_cast<double>(x[i]) - y[i]);
  return std::sqrt(sum / static_cast<double>(x.size()));
}

// IQ1 to IQ3 have no code for zero, only small values: the smallest may be a fifth of the largest in a block.
bool has_zero(const TypeTraits& t) {
  return !t.name.starts_with("IQ1") && !t.name.starts_with("IQ2") && !t.name.starts_with("IQ3");
}

// The largest magnitude that a format with a limited range stores.
float largest_value(const TypeTraits& t) { return t.type == DataType::kNVFP4 ? 6 * 448 : kMax; }

bool all_finite(const std::vector<float>& x) {
  return std::all_of(x.begin(), x.end(), [](float v) { return std::isfinite(v); });
}

}  // namespace

TEST_CASE("random legal bits decode as in the slow decoder") {
  test::Random random(10);
  for (const TypeTraits* t : quantized_types()) {
    CAPTURE(t->name);
    const int64_t n = 256 * 200;
    std::vector<uint64_t> blocks = block_buffer(*t, n);
    for (uint64_t& b : blocks) b = random.next();
    CHECK(count_differences(*t, blocks.data(), n) == 0);
  }
}

TEST_CASE("every extreme of the scales decodes as in the slow decoder") {
  const uint16_t extremes[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x3c00,
                               0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x7c01};
  test::Random random(11);
  for (const test::QuantRecord& record : test::kQuantRecords) {
    if (record.d < 0) continue;
    const TypeTraits& t = *find_type(record.name);
    CAPTURE(t.name);
    std::vector<uint64_t> block = block_buffer(t, t.block_size);
    auto* bytes = reinterpret_cast<uint8_t*>(block.data());
    for (int fill = 0; fill < 4; ++fill) {  // random, random, all zero, all one
      for (uint16_t d : extremes) {
        for (uint16_t m : extremes) {
          for (uint64_t& b : block) b = fill < 2 ? random.next() : fill == 2 ? 0 : ~uint64_t{0};
          std::memcpy(bytes + record.d, &d, 2);
          if (record.m >= 0) std::memcpy(bytes + record.m, &m, 2);
          CHECK(count_differences(t, bytes, t.block_size) == 0);
        }
      }
    }
  }
  const TypeTraits& t = traits(DataType::kMXFP4);
  for (int e = 0; e < 256; ++e) {
    uint8_t bytes[17] = {static_cast<uint8_t>(e)};
    for (int i = 0; i < 16; ++i) bytes[1 + i] = static_cast<uint8_t>(i | (15 - i) << 4);
    CHECK(count_differences(t, bytes, 32) == 0);
  }
}

TEST_CASE("random legal bits decode as llama.cpp decodes them") {
  CHECK(std::size(test::kQuantRecords) == quantized_types().size());
  for (const test::QuantRecord& record : test::kQuantRecords) {
    CAPTURE(record.name);
    const TypeTraits& t = *find_type(record.name);
    const int64_t n = 16384;
    test::Random random(12);
    std::vector<uint64_t> blocks = block_buffer(t, n);
    for (uint64_t& b : blocks) b = random.next();
    std::vector<float> values(n);
    t.to_float(blocks.data(), values.data(), n);
    uint64_t hash = 0xcbf29ce484222325u;
    for (float v : values) {
      const uint32_t bits = std::isnan(v) ? 0x7fc00000u : std::bit_cast<uint32_t>(v);
      for (int k = 0; k < 4; ++k) hash = (hash ^ ((bits >> (8 * k)) & 255)) * 0x100000001b3u;
    }
    CHECK(hash == record.decoded);
  }
}

TEST_CASE("error of a normal distribution, per type") {
  test::Random random(13);
  const std::vector<float> x = random.normals(256 * 128);
  const auto check = [&](std::string_view name, double recorded) {
    CAPTURE(name);
    CHECK(rmse(x, encode_decode(*find_type(name), x)) / recorded == doctest::Approx(1).epsilon(0.0005));
  };
  for (const test::QuantRecord& record : test::kQuantRecords) check(record.name, record.rmse);
  check("F16", 0.0002084);
  check("BF16", 0.001673);
}

TEST_CASE("the error scales with the data, over the range of F16 scales") {
  test::Random random(14);
  const std::vector<float> x = random.normals(2048);
  for (const TypeTraits* t : quantized_types()) {
    CAPTURE(t->name);
    const double error = rmse(x, encode_decode(*t, x));
    for (int exponent : {-6, -3, 7, 12}) {
      CAPTURE(exponent);
      if (std::ldexp(4.0f, exponent) > largest_value(*t)) continue;
      std::vector<float> scaled = x;
      for (float& v : scaled) v = std::ldexp(v, exponent);
      CHECK(rmse(scaled, encode_decode(*t, scaled)) <= 1.1 * std::ldexp(error, exponent));
    }
  }
}

TEST_CASE("zero stays zero, constants stay close") {
  for (const TypeTraits* t : quantized_types()) {
    CAPTURE(t->name);
    for (float v : encode_decode(*t, std::vector<float>(512, 0.0f))) REQUIRE(v == 0.0f);
    for (float v : encode_decode(*t, std::vector<float>(512, -0.0f))) REQUIRE(v == 0.0f);
    for (float c : {1.0f, -1.0f, 0.03125f, 0.7f, -0.0123f, 300.0f, -4000.0f}) {
      CAPTURE(c);
      if (std::abs(c) > largest_value(*t)) continue;
      const double allowed = t->type == DataType::kMXFP4 ? 0.2 : t->type == DataType::kNVFP4 ? 0.06 : 0.02;
      for (float v : encode_decode(*t, std::vector<float>(256, c))) REQUIRE(std::abs(v - c) <= allowed * std::abs(c));
    }
  }
}

TEST_CASE("unusual data: finite values decode to finite values") {
  test::Random random(15);
  std::vector<std::vector<float>> rows;
  const auto row = [&](const std::function<float(int)>& value) {
    std::vector<float> x(256);
    for (int i = 0; i < 256; ++i) x[i] = value(i);
    rows.push_back(x);
  };
  const float denormal = std::numeric_limits<float>::denorm_min();
  for (float c : {kMax, -kMax, denormal, -denormal, 1e-40f, 1e-38f, 1e-30f, 5e-8f, 6e-8f, 65504.0f, 1e6f, 1e10f}) {
    row([&](int) { return c; });
    row([&](int i) { return i % 2 ? c : -c; });
    row([&](int i) { return i % 3 ? c : 0; });
    row([&](int i) { return i == 7 ? c : 0; });
    row([&](int i) { return i == 255 ? c : denormal; });
    row([&](int i) { return i % 32 == 31 ? c : 1.0f; });
    row([&](int i) { return c * (static_cast<float>(i) / 256); });
    row([&](int) { return c * static_cast<float>(random.uniform() - 0.5); });
  }
  for (int repeat = 0; repeat < 100; ++repeat) {
    row([&](int) {
      const float v = std::bit_cast<float>(static_cast<uint32_t>(random.next()));
      return std::isfinite(v) ? v : 0.0f;
    });
  }
  for (const TypeTraits* t : quantized_types()) {
    CAPTURE(t->name);
    for (size_t k = 0; k < rows.size(); ++k) {
      CAPTURE(k);
      CHECK(all_finite(encode_decode(*t, rows[k])));
    }
  }
}

TEST_CASE("a single outlier survives and does not take the sign of others") {
  for (const TypeTraits* t : quantized_types()) {
    CAPTURE(t->name);
    if (t->type == DataType::kQ1_0) continue;  // all values have one magnitude
    for (float outlier : {1000.0f, -1000.0f, 0.25f}) {
      for (int at : {0, 15, 16, 31, 100, 255}) {
        std::vector<float> x(256, 0.0f);
        x[at] = outlier;
        const std::vector<float> y = encode_decode(*t, x);
        CHECK(std::abs(y[at] - outlier) <= (has_zero(*t) ? 0.2f : 0.3f) * std::abs(outlier));
        for (int i = 0; i < 256; ++i) {
          if (i != at) CHECK(std::abs(y[i]) <= (has_zero(*t) ? 0.05f : 0.2f) * std::abs(outlier));
        }
      }
    }
  }
}

TEST_CASE("a NaN or an infinity visibly affects its block, and no other") {
  test::Random random(16);
  const std::vector<float> good = random.normals(768);
  for (const TypeTraits* t : quantized_types()) {
    CAPTURE(t->name);
    if (t->type == DataType::kNVFP4) continue;  // it has neither
    const std::vector<float> expected = encode_decode(*t, good);
    for (float bad : {NAN, -NAN, INFINITY, -INFINITY}) {
      for (int at : {256, 300, 511}) {
        std::vector<float> x = good;
        x[at] = bad;
        const std::vector<float> y = encode_decode(*t, x);
        const int size = static_cast<int>(t->block_size), first = at / size * size;
        for (int i = 0; i < 768; ++i) {
          const bool inside = i >= first && i < first + size;
          if (inside) CHECK(!std::isfinite(y[i]));
          if (!inside) CHECK(y[i] == expected[i]);
        }
      }
    }
  }
}

TEST_CASE("encoding depends on the block alone and writes all of it") {
  test::Random random(17);
  const std::vector<float> x = random.normals(1024);
  for (const TypeTraits* t : quantized_types()) {
    CAPTURE(t->name);
    const size_t bytes = row_bytes(t->type, 1024);
    std::vector<uint64_t> whole(bytes / 8 + 2, 0), parts(bytes / 8 + 2, ~uint64_t{0});
    t->from_float(x.data(), whole.data(), 1024);
    for (int64_t start = 0; start < 1024; start += t->block_size) {
      auto* block = reinterpret_cast<uint8_t*>(parts.data()) + start / t->block_size * t->type_size;
      t->from_float(x.data() + start, block, t->block_size);
    }
    CHECK(std::memcmp(whole.data(), parts.data(), bytes) == 0);
    // Nothing is written past the row.
    const auto* tail = reinterpret_cast<const uint8_t*>(whole.data()) + bytes;
    CHECK(std::all_of(tail, tail + 8, [](uint8_t b) { return b == 0; }));
  }
}

TEST_CASE("decoded values encode to almost themselves") {
  test::Random random(18);
  const std::vector<float> x = random.normals(4096);
  for (const TypeTraits* t : quantized_types()) {
    CAPTURE(t->name);
    const std::vector<float> once = encode_decode(*t, x);
    CHECK(rmse(once, encode_decode(*t, once)) <= 0.5 * rmse(x, once));
  }
}

TEST_CASE("model files of every type hold plausible values") {
  const auto folder = test::shared_dir("model files of every type hold plausible values");
  if (!folder) return;
  std::vector<std::string> names = {"F16", "BF16"};
  for (const test::QuantRecord& record : test::kQuantRecords) {
    if (record.name != "Q8_K") names.emplace_back(record.name);  // no weights are stored in it
  }
  for (const std::string& name : names) {
    CAPTURE(name);
    std::string lower = name;
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    const std::string prefix = name == "Q1_0" ? "quant-1bit-" : name == "Q2_0" ? "quant-2bit-" : "quant-";
    const std::string file = name == "MXFP4" ? "gpt-oss-mxfp4.gguf" : concat(prefix, lower, ".gguf");
    const auto gguf = GgufFile::open(*folder / "goldens" / "arch" / file);
    const TypeTraits& t = *find_type(std::string_view(name));
    int found = 0;
    for (const GgufTensor& tensor : gguf->tensors()) {
      if (tensor.type != t.type) continue;
      ++found;
      CAPTURE(tensor.name);
      const int64_t n = tensor.n_elements();
      std::vector<float> values(static_cast<size_t>(n));
      t.to_float(tensor.data, values.data(), n);
      CHECK(all_finite(values));
      double sum = 0, squares = 0, largest = 0;
      for (float v : values) {
        sum += v;
        squares += static_cast<double>(v) * v;
        largest = std::max(largest, std::abs(static_cast<double>(v)));
      }
      const double mean = sum / static_cast<double>(n), deviation = std::sqrt(squares / static_cast<double>(n));
      // Random weights around zero reveal a wrong offset or scale.
      CHECK(std::abs(mean) < 0.1 * deviation);
      CHECK(deviation > 0.01);
      CHECK(deviation < (t.type == DataType::kNVFP4 ? 200 : 2));  // a tensor next to it has the factor
      CHECK(largest < 8 * deviation);
      if (t.quantized) CHECK(count_differences(t, tensor.data, n) == 0);
    }
    CHECK(found > 0);
  }
}
