// Cases of matmul and matmul_experts.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "ggml-like/error.h"
#include "ggml-like/quant/activation.h"
#include "tests/conformance/case.h"
#include "tests/conformance/weights.h"

namespace infer::test {
namespace {

// The dot product of a weight row and a row of activations, as defined by quant/dot.h.
class DotFormula {
 public:
  DotFormula(DataType type, const float* x, int64_t k) : type_(type), k_(k), x_(x) {
    if (traits(type).activation == ActivationFormat::kF32) return;
    if (traits(type).activation == ActivationFormat::kInt8Per256) {
      large_.resize(k / 256);
      quantize_activations(x, large_.data(), k / 256);
    } else {
      small_.resize(k / 32);
      quantize_activations(x, small_.data(), k / 32);
    }
  }
  float operator()(const std::byte* row) const {
    const void* x = !large_.empty()   ? static_cast<const void*>(large_.data())
                    : !small_.empty() ? static_cast<const void*>(small_.data())
                                      : x_;
    return traits(type_).dot(row, x, k_);
  }

 private:
  DataType type_;
  int64_t k_;
  const float* x_;
  std::vector<Activation256> large_;
  std::vector<Activation32> small_;
};

// The error bound of the formula, relative to the exact product. Float weights: k / 16 + 5 roundings. Quantized
// weights: every activation is off by up to half a step (largest magnitude of its block / 127), and each term has 18
// roundings in an activation block and one per block of the row.
double product_bound(DataType type, const WeightTerms& w, const float* x, int64_t k) {
  double bound = 0;
  if (traits(type).activation == ActivationFormat::kF32) {
    for (int64_t i = 0; i < k; ++i) bound += w.magnitude[i] * std::abs(x[i]);
    return 1.01 * static_cast<double>(k / 16 + 6) * kEps * bound + static_cast<double>(k) * kTiny;
  }
  const int64_t block = traits(type).activation == ActivationFormat::kInt8Per256 ? 256 : 32;
  const double roundings = 1.01 * static_cast<double>(18 + k / block) * kEps;
  for (int64_t start = 0; start < k; start += block) {
    double largest = 0;
    for (int64_t i = start; i < start + block; ++i) largest = std::max(largest, std::abs(static_cast<double>(x[i])));
    // A block whose scale has no finite inverse becomes zero; a denormal scale has an error of up to 2^-150.
    const bool vanishes = largest < 127 / 0x1.fffffep127;
    const double half_step = vanishes ? largest : 0.501 * largest / 127 + 127 * 0x1p-150;
    for (int64_t i = start; i < start + block; ++i) {
      bound += std::abs(w.value[i]) * half_step + roundings * w.magnitude[i] * (std::abs(x[i]) + half_step);
    }
  }
  return bound + static_cast<double>(k) * kTiny;
}

// What rounding to fp16 adds, for 16-bit weights and many rows of activations on a GPU's tensor cores. Activations, of
// a row that is scaled to at most 2^15, are off by up to 2^-11 of themselves or 2^-25; weights below 2^-14, which fp16
// stores as denormals, by up to 2^-25.
double half_bound(const WeightTerms& w, const float* x, int64_t k) {
  double largest = 0, bound = 0;
  for (int64_t i = 0; i < k; ++i) largest = std::max(largest, std::abs(static_cast<double>(x[i])));
  for (int64_t i = 0; i < k; ++i) {
    const double value = std::abs(static_cast<double>(x[i]));
    bound += w.magnitude[i] * std::max(0x1p-11 * value, 0x1p-39 * largest) + 0x1p-25 * value;
  }
  return 1.01 * bound;
}
bool may_round_to_half(DataType type, int tokens) {
  return (type == DataType::kF16 || type == DataType::kBF16) && tokens > 16;
}

struct MatMulShape {
  int n, k, t;
  WeightData data = WeightData::kFloats;
  bool bias = false, view = false;
  // Activations: "" normal, "zero", "spiky", "denormal", "nan", or "level": in every third token all have the same
  // magnitude; in the others the codes have one sign and add up to 1023 over 16 values, the most for which sums with
  // 6-bit codes fit in 16 bits.
  std::string x = "";
};

// Turns normal activations, rows of `width` values of which the matmul takes those from `begin` on, into those of s.x.
void change_activations(const MatMulShape& s, int begin, int width, Random& random, float* x) {
  for (int64_t i = 0; i < int64_t{s.t} * width; ++i) {
    float& v = x[i];
    if (s.x == "zero") v = 0;
    if (s.x == "spiky") v = random.uniform() < 0.02 ? v * 1000 : v * 1e-3f;
    if (s.x == "denormal") v *= 0x1p-140f;
    if (s.x == "level") {
      const int64_t at = i % width - begin;
      if (i / width % 3 == 2) v = std::copysign(1.0f, v);
      else v = at % 16 < 8 ? 127.0f : at % 16 == 8 ? 7.0f : 0.0f;
      if (i / width % 3 == 1) v = -v;
    }
    if (s.x == "nan" && i / width == s.t - 1 && i % width == begin + s.k / 2) v = NAN;
  }
}

void add_matmul(std::vector<Entry>& list, const TypeTraits& traits_of, const MatMulShape& s, bool quick) {
  const DataType type = traits_of.type;
  std::string text = concat(traits_of.name, " n=", s.n, " k=", s.k, " t=", s.t, " ", name_of(s.data));
  if (s.bias) text += " bias";
  if (s.view) text += " view";
  if (!s.x.empty()) text += " x=" + s.x;
  add_case(list, Op::kMatMul, text, quick, [=](Case& c, Random& random) {
    c.tokens = s.t;
    c.token_bucket = s.t + s.t % 3;
    const int begin = s.view ? 7 : 0, width = s.k + (s.view ? 11 : 0);
    Leaf x = float_leaf({c.token_bucket, width}, RowKind::kTokens, s.t, random);
    change_activations(s, begin, width, random, x.as<float>());
    c.leaves = {x, make_weights(type, {s.n, s.k}, s.data, random)};
    if (s.bias) c.leaves.push_back(float_leaf({s.n}, RowKind::kFixed, 0, random));
    c.build = [=](Graph& g, const std::vector<Weight>& w) {
      const ValueId in = g.weight(w[0]);
      return std::vector{g.matmul(s.view ? g.view_columns(in, begin, s.k) : in, w[1], s.bias ? &w[2] : nullptr)};
    };
    const std::vector<Leaf> leaves = c.leaves;
    const size_t row = row_bytes(type, s.k);
    const auto at = [=](int t) { return leaves[0].as<float>() + int64_t{t} * width + begin; };
    c.formula = [=] {
      std::vector<float> y(static_cast<size_t>(s.t) * s.n);
      for (int t = 0; t < s.t; ++t) {
        const DotFormula dot(type, at(t), s.k);
        for (int i = 0; i < s.n; ++i) {
          float& to = y[static_cast<size_t>(t) * s.n + i];
          to = dot(leaves[1].data.data() + i * row);
          if (s.bias) to += leaves[2].as<float>()[i];
        }
      }
      return y;
    };
    const auto bounds = [=](const std::vector<Output>& ref, bool halves) {
      std::vector<double> bound(static_cast<size_t>(s.t) * s.n);
      for (int i = 0; i < s.n; ++i) {
        const WeightTerms w = weight_terms(type, leaves[1].data.data() + i * row, s.k);
        for (int t = 0; t < s.t; ++t) {
          const size_t e = static_cast<size_t>(t) * s.n + i;
          const double bias = s.bias ? std::abs(leaves[2].as<float>()[i]) : 0;
          bound[e] = product_bound(type, w, at(t), s.k) + 3 * kEps * (std::abs(ref[0].floats()[e]) + bias);
          if (halves) bound[e] += half_bound(w, at(t), s.k);
        }
      }
      return Bounds{bound};
    };
    c.bounds = [=](const std::vector<Output>& ref) { return bounds(ref, false); };
    if (may_round_to_half(type, c.token_bucket)) {
      c.cuda_bounds = [=](const std::vector<Output>& ref) { return bounds(ref, true); };
    }
  });
}

struct ExpertShape {
  int experts, used, n, k, t;
  bool per_expert = false, bias = false, one_expert = false;
  bool no_ids = false;  // input u of each token is for expert u
};

// Which experts each token uses.
Leaf expert_ids(const ExpertShape& s, int bucket, Random& random) {
  Leaf ids{make_desc(DataType::kI32, {bucket, s.used}, RowKind::kTokens), {}};
  ids.data.assign(ids.desc.bytes(), kSentinel);
  for (int t = 0; t < s.t; ++t) {
    const int first = s.no_ids ? 0 : s.one_expert ? 1 : static_cast<int>(random.next() % s.experts);
    const int step = s.no_ids || s.one_expert ? 1 : 3;
    for (int u = 0; u < s.used; ++u) ids.as<int32_t>()[t * s.used + u] = (first + u * step) % s.experts;
  }
  return ids;
}

void add_experts(std::vector<Entry>& list, const TypeTraits& traits_of, const ExpertShape& s, bool quick) {
  const DataType type = traits_of.type;
  std::string text = concat(traits_of.name, " e=", s.experts, " u=", s.used, " n=", s.n, " k=", s.k, " t=", s.t);
  if (s.per_expert) text += " per-expert";
  if (s.bias) text += " bias";
  if (s.one_expert) text += " one-expert";
  if (s.no_ids) text += " no-ids";
  add_case(list, Op::kMatMulExperts, text, quick, [=](Case& c, Random& random) {
    c.tokens = s.t;
    c.token_bucket = s.t + 1;
    const Shape x_shape = s.per_expert ? Shape{c.token_bucket, s.used, s.k} : Shape{c.token_bucket, s.k};
    c.leaves = {float_leaf(x_shape, RowKind::kTokens, s.t, random),
                make_weights(type, {s.experts, s.n, s.k}, WeightData::kFloats, random)};
    c.leaves.push_back(expert_ids(s, c.token_bucket, random));
    if (s.bias) c.leaves.push_back(float_leaf({s.experts, s.n}, RowKind::kFixed, 0, random));
    c.build = [=](Graph& g, const std::vector<Weight>& w) {
      const ValueId chosen = s.no_ids ? kNoValue : g.weight(w[2]);
      return std::vector{g.matmul_experts(g.weight(w[0]), w[1], chosen, s.bias ? &w[3] : nullptr)};
    };
    const std::vector<Leaf> leaves = c.leaves;
    const size_t row = row_bytes(type, s.k);
    const auto input = [=](int t, int u) {
      return leaves[0].as<float>() + (s.per_expert ? int64_t{t} * s.used + u : t) * s.k;
    };
    // Calls f(index of the output, activations, expert, row of the expert).
    const auto each = [=](const auto& f) {
      for (int t = 0; t < s.t; ++t) {
        for (int u = 0; u < s.used; ++u) {
          const int e = leaves[2].as<int32_t>()[t * s.used + u];
          for (int i = 0; i < s.n; ++i) {
            f((static_cast<size_t>(t) * s.used + u) * s.n + i, input(t, u), e, int64_t{e} * s.n + i);
          }
        }
      }
    };
    const size_t size = static_cast<size_t>(s.t) * s.used * s.n;
    c.formula = [=] {
      std::vector<float> y(size);
      each([&](size_t at, const float* x, int, int64_t i) {
        y[at] = DotFormula(type, x, s.k)(leaves[1].data.data() + i * row);
        if (s.bias) y[at] += leaves[3].as<float>()[i];
      });
      return y;
    };
    const auto bounds = [=](const std::vector<Output>& ref, bool halves) {
      std::vector<double> bound(size);
      each([&](size_t at, const float* x, int, int64_t i) {
        const WeightTerms w = weight_terms(type, leaves[1].data.data() + i * row, s.k);
        const double bias = s.bias ? std::abs(leaves[3].as<float>()[i]) : 0;
        bound[at] = product_bound(type, w, x, s.k) + 3 * kEps * (std::abs(ref[0].floats()[at]) + bias);
        if (halves) bound[at] += half_bound(w, x, s.k);
      });
      return Bounds{bound};
    };
    c.bounds = [=](const std::vector<Output>& ref) { return bounds(ref, false); };
    if (may_round_to_half(type, c.token_bucket)) {
      c.cuda_bounds = [=](const std::vector<Output>& ref) { return bounds(ref, true); };
    }
  });
}

void add_subset(std::vector<Entry>& list, const TypeTraits& t) {
  const bool super = t.block_size == 256, floats = !t.quantized;
  const int block = floats ? 32 : static_cast<int>(t.block_size);
  // The fixed subset: one token and many, remainders of 16 and 48 rows, every kind of data, strides, a bias.
  add_matmul(list, t, {.n = 49, .k = 512, .t = 5}, true);
  add_matmul(list, t, {.n = 70, .k = 256, .t = 1, .data = floats ? WeightData::kFloats : WeightData::kBits}, true);
  add_matmul(list, t, {.n = 15, .k = 256, .t = 9, .bias = true, .view = true}, true);
  add_matmul(list, t, {.n = 33, .k = 768, .t = 3}, true);
  // Few, long rows, so that several warps of a GPU share one.
  add_matmul(list, t, {.n = 3, .k = 8704, .t = 2}, true);
  // Tiles of tensor cores: large ones with remainders, and small ones whose steps several blocks share.
  const bool common = t.type == DataType::kQ4_K || t.type == DataType::kQ8_0 || t.type == DataType::kF16;
  add_matmul(list, t, {.n = 131, .k = 256, .t = 133}, common);
  add_matmul(list, t, {.n = 20, .k = 2304, .t = 34, .bias = true, .view = true}, true);
  if (!floats) {
    add_matmul(list, t, {.n = 17, .k = 256, .t = 6, .data = WeightData::kBits, .x = "spiky"}, true);
    add_matmul(list, t, {.n = 17, .k = 256, .t = 2, .data = WeightData::kLargest}, true);
    add_matmul(list, t, {.n = 19, .k = 512, .t = 7, .data = WeightData::kLargest}, true);
    add_matmul(list, t, {.n = 21, .k = 512, .t = 11, .data = WeightData::kLargest}, true);
    add_matmul(list, t, {.n = 50, .k = 512, .t = 13, .data = WeightData::kLevel, .x = "level"}, true);
    add_matmul(list, t, {.n = 50, .k = 256, .t = 22, .data = WeightData::kBits, .x = "level"}, true);
    add_matmul(list, t, {.n = 5, .k = 256, .t = 4, .data = WeightData::kDenormal}, true);
    add_matmul(list, t, {.n = 16, .k = 256, .t = 7, .data = WeightData::kZero}, true);
    add_matmul(list, t, {.n = 19, .k = 256, .t = 5, .data = WeightData::kBits, .x = "nan"}, true);
    add_matmul(list, t, {.n = 18, .k = 256, .t = 5, .x = "zero"}, true);
    add_matmul(list, t, {.n = 18, .k = 256, .t = 5, .x = "denormal"}, true);
  }
  if (!super) {
    add_matmul(list, t, {.n = 33, .k = 3 * block, .t = 5}, true);
    add_matmul(list, t, {.n = 17, .k = block, .t = 1, .data = floats ? WeightData::kFloats : WeightData::kBits}, true);
  }
  if (floats) {
    for (const int k : {1, 7, 15, 17, 31, 33, 100}) add_matmul(list, t, {.n = 7, .k = k, .t = 3}, k < 18);
    // More than one GEMM block of rows, of tokens and of k, each with a remainder.
    add_matmul(list, t, {.n = 29, .k = 17, .t = 13}, true);
    add_matmul(list, t, {.n = 53, .k = 1035, .t = 17, .view = true}, true);
    add_matmul(list, t, {.n = 26, .k = 96, .t = 103, .bias = true}, true);
    add_matmul(list, t, {.n = 49, .k = 2311, .t = 199}, false);
  }
}

void add_all(std::vector<Entry>& list, const TypeTraits& t) {
  // All cases: every number of rows up to 70, every number of tokens that selects another kernel, long rows, all data.
  for (int n = 1; n <= 70; ++n) {
    for (const int tokens : {1, 3, 5})
      add_matmul(list, t, {.n = n, .k = 256, .t = tokens, .data = WeightData::kFloats, .view = true}, false);
  }
  std::set<int> lengths{256, 512, 2304};
  const int block = t.quantized ? static_cast<int>(t.block_size) : 32;
  if (block < 256) lengths.insert({block, 2 * block, 9 * block});
  for (const int k : lengths) {
    for (const int tokens : {1, 2, 3, 4, 5, 7, 8, 16, 33}) {
      for (const int n : {16, 48, 67}) {
        for (const WeightData data : all_weight_data(t.type)) {
          add_matmul(list, t, {.n = n, .k = k, .t = tokens, .data = data, .bias = true}, false);
        }
      }
    }
  }
}

}  // namespace

void add_matmul_cases(std::vector<Entry>& list) {
  for (const TypeTraits& t : all_types()) {
    if (!t.dot) continue;
    const bool super = t.block_size == 256, floats = !t.quantized;
    add_subset(list, t);
    add_all(list, t);
    add_experts(list, t, {.experts = 5, .used = 2, .n = 17, .k = 256, .t = 3}, super || floats);
    if (super || floats) continue;
    const int k = static_cast<int>(t.block_size);
    add_experts(list, t, {.experts = 4, .used = 2, .n = 17, .k = 3 * k, .t = 4, .per_expert = true, .bias = true},
                true);
    add_experts(list, t, {.experts = 3, .used = 3, .n = 50, .k = 2 * k, .t = 5, .per_expert = true, .no_ids = true},
                true);
  }
  const TypeTraits &q4 = traits(DataType::kQ4_K), &mx = traits(DataType::kMXFP4), &f16 = traits(DataType::kF16);
  add_experts(list, q4, {.experts = 8, .used = 4, .n = 49, .k = 256, .t = 5, .per_expert = true}, true);
  add_experts(list, mx, {.experts = 8, .used = 4, .n = 33, .k = 256, .t = 7, .bias = true}, true);
  for (const TypeTraits* t : {&q4, &mx, &f16}) {
    add_experts(list, *t, {.experts = 3, .used = 1, .n = 16, .k = 256, .t = 1}, false);
    add_experts(list, *t, {.experts = 6, .used = 2, .n = 50, .k = 512, .t = 33, .bias = true, .one_expert = true},
                true);
    add_experts(list, *t, {.experts = 32, .used = 8, .n = 20, .k = 512, .t = 16, .per_expert = true}, false);
    add_experts(list, *t, {.experts = 3, .used = 2, .n = 130, .k = 256, .t = 90, .bias = true}, true);
    // More tokens than fit in a tile, and more than the most that are multiplied one by one.
    add_experts(list, *t, {.experts = 3, .used = 3, .n = 50, .k = 512, .t = 70, .per_expert = true, .no_ids = true},
                true);
    add_experts(list, *t, {.experts = 7, .used = 7, .n = 40, .k = 256, .t = 33, .bias = true}, false);
  }
}

TEST_CASE("matmul") { run_cases(Op::kMatMul); }
TEST_CASE("matmul_experts") { run_cases(Op::kMatMulExperts); }

}  // namespace infer::test
