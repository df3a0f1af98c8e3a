// Cases of operations on recurrent states. Their error bounds follow each state value through the recurrence: `sum` is
// the sum of the magnitudes of its terms, `off` its error from rounding. The relative errors of exp and of the sigmoid
// are 2e-7, that of the time step log(1 + exp(dt)) is 4e-7; the reference rounds its state once per token.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "ggml-like/error.h"
#include "tests/conformance/recurrent_world.h"
#include "tests/conformance/weights.h"

namespace infer::test {
namespace {

constexpr double kExp = 2e-7 + 2 * kEps, kStep = 4e-7 + 2 * kEps;

double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

struct Tracked {
  double sum = 0, off = 0;
  void decay(double factor, double relative) {
    off = factor * off + factor * sum * (relative + kEps);
    sum *= factor;
  }
  // Adds a term of the given magnitude and error.
  void add(double magnitude, double error) {
    sum += magnitude;
    off += error + 2 * kEps * sum;
  }
};

Leaf vector_leaf(int64_t n, Random& random, float spread = 1) {
  return float_leaf({n}, RowKind::kFixed, 0, random, spread);
}

// Negative rates of decay.
Leaf rates_leaf(const Shape& shape, Random& random) {
  Leaf leaf = float_leaf(shape, RowKind::kFixed, 0, random);
  for (int64_t i = 0; i < shape.elements(); ++i) leaf.as<float>()[i] = -0.1f - std::abs(leaf.as<float>()[i]);
  return leaf;
}

RecurrentData draw(const RecurrentCase& c, Random& random) {
  RecurrentData d;
  for (const Shape& row : c.rows) {
    d.inputs.emplace_back();
    for (const int length : c.lengths) {
      d.inputs.back().push_back(random.normals(static_cast<size_t>(length * row.elements())));
    }
  }
  return d;
}

// Divides each vector of n values by its length, as models do with keys.
void normalize(std::vector<std::vector<float>>& input, int64_t n) {
  for (std::vector<float>& x : input) {
    for (size_t i = 0; i < x.size(); i += static_cast<size_t>(n)) {
      double square = 0;
      for (int64_t j = 0; j < n; ++j) square += double{x[i + j]} * x[i + j];
      for (int64_t j = 0; j < n; ++j) x[i + j] = static_cast<float>(x[i + j] / std::sqrt(square));
    }
  }
}

// f(sequence, bounds of each output to append to) for every sequence.
template <typename F>
RecurrentBounds bounds_of(const RecurrentCase& c, size_t n_outputs, F f) {
  RecurrentBounds bounds(n_outputs, std::vector<std::vector<double>>(c.lengths.size()));
  for (size_t s = 0; s < c.lengths.size(); ++s) f(s, bounds);
  return bounds;
}

// `make` fills the case, draws its data and returns its bounds.
template <typename Make>
void add(std::vector<Entry>& list, Op op, const std::string& text, bool quick, Make make) {
  const std::string name = concat(op_info(op).name, " ", text);
  list.push_back({op, name, quick, [=](const Devices& devices) {
                    Random random = random_for(name);
                    RecurrentCase c;
                    c.op = op;
                    RecurrentData d;
                    const RecurrentBounds bounds = make(c, d, random);
                    return check_recurrent(c, d, bounds, devices);
                  }});
}

void add_ngrams(std::vector<Entry>& list, DataType type, int longest, int per_length, bool quick) {
  const std::string text = concat(traits(type).name, " n=", longest, " per length=", per_length);
  add(list, Op::kNgramEmbed, text, quick, [=](RecurrentCase& c, RecurrentData& d, Random& random) {
    NgramTables tables;
    tables.per_length = per_length;
    tables.end_token = 3;
    for (int i = 0; i < longest; ++i) tables.multipliers.push_back(random.next() | 1);
    uint32_t row = 1;  // row 0 belongs to no lookup
    for (int i = 0; i < (longest - 1) * per_length; ++i) {
      tables.sizes.push_back(static_cast<uint32_t>(5 + 2 * i));
      tables.offsets.push_back(row);
      row += tables.sizes.back();
    }
    c.lengths = {9, 1, 17};
    for (const int length : c.lengths) {
      std::vector<int>& ids = c.ids.emplace_back();
      for (int t = 0; t < length; ++t) ids.push_back(static_cast<int>(random.next() % 6));
    }
    c.state_values = tables.state_values();
    c.weights = {make_weights(type, {row, 64}, WeightData::kFloats, random)};
    const auto shared = std::make_shared<const NgramTables>(tables);
    c.build = [=](Graph& g, const std::vector<ValueId>&, std::span<const Weight> w, const CacheDesc& state) {
      return std::vector{g.ngram_embed(w[0], shared, state)};
    };
    d = draw(c, random);
    return bounds_of(c, 1, [&](size_t s, RecurrentBounds& bounds) {
      bounds[0][s].assign(static_cast<size_t>(c.lengths[s] * shared->lookups() * 64), 0);
    });
  });
}

struct ConvShape {
  int channels, width, dilation = 1;
  bool bias = false, silu = false, view = false;
};

void add_conv(std::vector<Entry>& list, const ConvShape& s, bool quick) {
  std::string text = concat("c=", s.channels, " width=", s.width);
  if (s.dilation > 1) text += concat(" dilation=", s.dilation);
  text += concat(s.bias ? " bias" : "", s.silu ? " silu" : "", s.view ? " view" : "");
  add(list, Op::kShortConv, text, quick, [=](RecurrentCase& c, RecurrentData& d, Random& random) {
    c.rows = {{s.channels}};
    c.lengths = {9, 1, 17};
    c.view = s.view;
    c.state_values = int64_t{s.width - 1} * s.dilation * s.channels;
    c.weights = {float_leaf({s.channels, s.width}, RowKind::kFixed, 0, random), vector_leaf(s.channels, random)};
    c.build = [=](Graph& g, const std::vector<ValueId>& in, std::span<const Weight> w, const CacheDesc& state) {
      return std::vector{
          g.short_conv(in[0], w[0], s.bias ? &w[1] : nullptr, {.silu = s.silu, .dilation = s.dilation}, state)};
    };
    d = draw(c, random);
    return bounds_of(c, 1, [&](size_t sequence, RecurrentBounds& bounds) {
      for (int t = 0; t < c.lengths[sequence]; ++t) {
        for (int i = 0; i < s.channels; ++i) {
          double sum = s.bias ? std::abs(c.weights[1].as<float>()[i]) : 0;
          for (int j = 0; j < s.width; ++j) {
            const int from = t - (s.width - 1 - j) * s.dilation;
            if (from < 0) continue;
            sum += std::abs(double{c.weights[0].as<float>()[i * s.width + j]} * d.row(c, 0, sequence, from)[i]);
          }
          // The slope of SiLU is below 1.1.
          const double off = (s.width + 3) * kEps * sum;
          bounds[0][sequence].push_back(s.silu ? 1.1 * off + sum * (2e-7 + 5 * kEps) + kTiny : off + kTiny);
        }
      }
    });
  });
}

struct PoolShape {
  int parts, dim, block;
  bool offsets = true, view = false;
};

void add_pool(std::vector<Entry>& list, const PoolShape& s, bool quick) {
  const std::string text =
      concat("c=", s.parts, " d=", s.dim, " block=", s.block, s.offsets ? " offsets" : "", s.view ? " view" : "");
  add(list, Op::kGatedPool, text, quick, [=](RecurrentCase& c, RecurrentData& d, Random& random) {
    c.rows = {{s.parts, s.dim}, {s.parts, s.dim}};
    c.lengths = {23, 1, 9};
    c.view = s.view;
    c.state_values = 3 * s.parts * s.dim;
    c.weights = {float_leaf({s.block, s.parts * s.dim}, RowKind::kFixed, 0, random)};
    c.build = [=](Graph& g, const std::vector<ValueId>& in, std::span<const Weight> w, const CacheDesc& state) {
      return std::vector{g.gated_pool(in[0], in[1], s.offsets ? &w[0] : nullptr, s.block, state)};
    };
    d = draw(c, random);
    // A mean of values up to `largest`. Each of its tokens multiplies all weights by an exponential: of a difference of
    // gates, which was rounded twice.
    return bounds_of(c, 1, [&](size_t sequence, RecurrentBounds& bounds) {
      double largest = 0, gate = 0;
      for (const float x : d.inputs[0][sequence]) largest = std::max(largest, std::abs(double{x}));
      for (const float x : d.inputs[1][sequence]) gate = std::max(gate, std::abs(double{x}));
      for (int i = 0; i < s.block * s.parts * s.dim; ++i) {
        gate = std::max(gate, std::abs(double{c.weights[0].as<float>()[i]}));
      }
      const int tokens = s.parts * s.block;
      const double relative = tokens * (2 * kExp + (6 + 8 * gate) * kEps);
      bounds[0][sequence].assign(static_cast<size_t>(c.lengths[sequence]) * s.dim, 2 * relative * largest + kTiny);
    });
  });
}

void add_shift(std::vector<Entry>& list, int channels, bool view) {
  add(list, Op::kTokenShift, concat("c=", channels, view ? " view" : ""), true,
      [=](RecurrentCase& c, RecurrentData& d, Random& random) {
        c.rows = {{channels}};
        c.lengths = {8, 1, 3};
        c.view = view;
        c.state_values = channels;
        c.build = [](Graph& g, const std::vector<ValueId>& in, std::span<const Weight>, const CacheDesc& state) {
          return std::vector{g.token_shift(in[0], state)};
        };
        d = draw(c, random);
        return bounds_of(c, 1, [&](size_t s, RecurrentBounds& bounds) {
          bounds[0][s].assign(static_cast<size_t>(c.lengths[s] * channels), 0);
        });
      });
}

struct ScanShape {
  int heads, dim, groups, n;
  bool per_value = false, skip = true, view = false;
};

// The bounds of one sequence.
void bound_scan(const ScanShape& s, const RecurrentCase& c, const RecurrentData& d, size_t sequence,
                std::vector<double>& bounds) {
  std::vector<Tracked> state(static_cast<size_t>(s.heads * s.dim * s.n));
  for (int t = 0; t < c.lengths[sequence]; ++t) {
    for (int i = 0; i < s.heads * s.dim; ++i) {
      const int head = i / s.dim, group = head / (s.heads / s.groups) * s.n;
      const double x = std::abs(d.row(c, 0, sequence, t)[i]), step = softplus(d.row(c, 1, sequence, t)[head]);
      const double skip = s.skip ? std::abs(c.weights[1].as<float>()[head]) * x : 0;
      double sum = skip, off = 0;
      for (int j = 0; j < s.n; ++j) {
        const double rate = step * c.weights[0].as<float>()[s.per_value ? head * s.n + j : head];
        const double term = step * x * std::abs(d.row(c, 2, sequence, t)[group + j]);
        const double out = std::abs(d.row(c, 3, sequence, t)[group + j]);
        Tracked& value = state[static_cast<size_t>(i * s.n + j)];
        value.decay(std::exp(rate), kExp + std::abs(rate) * kStep);
        value.add(term, term * (kStep + 3 * kEps));
        sum += value.sum * out;
        off += value.off * out;
      }
      bounds.push_back(off + (s.n / 16 + 8) * kEps * sum + kTiny);
    }
  }
}

void add_scan(std::vector<Entry>& list, const ScanShape& s, bool quick) {
  const std::string text = concat("h=", s.heads, " d=", s.dim, " g=", s.groups, " n=", s.n,
                                  s.per_value ? " per value" : "", s.skip ? " skip" : "", s.view ? " view" : "");
  add(list, Op::kSelectiveScan, text, quick, [=](RecurrentCase& c, RecurrentData& d, Random& random) {
    c.rows = {{s.heads, s.dim}, {s.heads}, {s.groups, s.n}, {s.groups, s.n}};
    c.lengths = {11, 1, 6};
    c.view = s.view;
    c.state_values = int64_t{s.heads} * s.dim * s.n;
    c.weights = {rates_leaf(s.per_value ? Shape{s.heads, s.n} : Shape{s.heads}, random), vector_leaf(s.heads, random)};
    c.build = [=](Graph& g, const std::vector<ValueId>& in, std::span<const Weight> w, const CacheDesc& state) {
      return std::vector{g.selective_scan({in[0], in[1], in[2], in[3]}, w[0], s.skip ? &w[1] : nullptr, state)};
    };
    d = draw(c, random);
    return bounds_of(
        c, 1, [&](size_t sequence, RecurrentBounds& bounds) { bound_scan(s, c, d, sequence, bounds[0][sequence]); });
  });
}

struct DeltaShape {
  int groups, n, heads, dim;
  bool per_channel = false, tiled = false, view = false;
  float lowest_decay = 0;
  int longest = 10;  // sequence
};

void bound_delta(const DeltaShape& s, const RecurrentCase& c, const RecurrentData& d, size_t sequence,
                 std::vector<double>& bounds) {
  std::vector<Tracked> state(static_cast<size_t>(s.heads * s.n * s.dim));
  for (int t = 0; t < c.lengths[sequence]; ++t) {
    for (int i = 0; i < s.heads * s.dim; ++i) {
      const int head = i / s.dim, group = s.tiled ? head % s.groups : head / (s.heads / s.groups);
      const float *q = d.row(c, 0, sequence, t) + group * s.n, *k = d.row(c, 1, sequence, t) + group * s.n;
      const double v = std::abs(d.row(c, 2, sequence, t)[i]), beta = std::abs(d.row(c, 4, sequence, t)[head]);
      Tracked* column = &state[static_cast<size_t>(i * s.n)];
      double read = 0, read_off = 0, sum = 0, off = 0;
      for (int j = 0; j < s.n; ++j) {
        const double a = c.weights[0].as<float>()[head];
        const double dt = d.row(c, 3, sequence, t)[s.per_channel ? head * s.n + j : head];
        const double rate = s.lowest_decay < 0 ? s.lowest_decay / (1 + std::exp(-a * dt)) : a * softplus(dt);
        const double off_rate = s.lowest_decay < 0 ? kExp + (4 + std::abs(a * dt)) * kEps : kStep;
        column[j].decay(std::exp(rate), kExp + std::abs(rate) * off_rate);
        read += column[j].sum * std::abs(k[j]);
        read_off += column[j].off * std::abs(k[j]);
      }
      const double correction = beta * (v + read);
      const double correction_off = beta * (read_off + (s.n + 3) * kEps * (v + read));
      for (int j = 0; j < s.n; ++j) {
        column[j].add(std::abs(k[j]) * correction, std::abs(k[j]) * correction_off);
        sum += column[j].sum * std::abs(q[j]);
        off += column[j].off * std::abs(q[j]);
      }
      bounds.push_back(off + (s.n + 2) * kEps * sum + kTiny);
    }
  }
}

void add_delta(std::vector<Entry>& list, const DeltaShape& s, bool quick) {
  const std::string text = concat("g=", s.groups, " n=", s.n, " h=", s.heads, " d=", s.dim,
                                  s.per_channel ? " per channel" : "", s.tiled ? " tiled" : "", s.view ? " view" : "",
                                  s.lowest_decay < 0 ? concat(" lowest=", s.lowest_decay) : "",
                                  s.longest != 10 ? concat(" t=", s.longest) : "");
  add(list, Op::kDeltaRule, text, quick, [=](RecurrentCase& c, RecurrentData& d, Random& random) {
    c.rows = {{s.groups, s.n},
              {s.groups, s.n},
              {s.heads, s.dim},
              s.per_channel ? Shape{s.heads, s.n} : Shape{s.heads},
              {s.heads}};
    c.lengths = {s.longest, 1, 5};
    c.view = s.view;
    c.state_values = int64_t{s.heads} * s.n * s.dim;
    c.weights = {rates_leaf({s.heads}, random)};
    c.build = [=](Graph& g, const std::vector<ValueId>& in, std::span<const Weight> w, const CacheDesc& state) {
      return std::vector{g.delta_rule({in[0], in[1], in[2], in[3], in[4]}, w[0],
                                      {.tiled_heads = s.tiled, .lowest_decay = s.lowest_decay}, state)};
    };
    d = draw(c, random);
    normalize(d.inputs[1], s.n);
    return bounds_of(
        c, 1, [&](size_t sequence, RecurrentBounds& bounds) { bound_delta(s, c, d, sequence, bounds[0][sequence]); });
  });
}

struct WkvShape {
  int heads, n;
  bool seven = false, view = false;
  int longest = 10;  // sequence
};

// The bounds of one sequence: of the result, and of the bonus.
void bound_wkv(const WkvShape& s, const RecurrentCase& c, const RecurrentData& d, size_t sequence,
               std::vector<double>& bounds, std::vector<double>& bonus_bounds) {
  std::vector<Tracked> state(static_cast<size_t>(s.heads * s.n * s.n));
  const auto at = [&](size_t input, int t, int i) { return std::abs(double{d.row(c, input, sequence, t)[i]}); };
  for (int t = 0; t < c.lengths[sequence]; ++t) {
    for (int i = 0; i < s.heads * s.n; ++i) {
      const int head = i / s.n * s.n;
      Tracked* column = &state[static_cast<size_t>(i * s.n)];
      double read = 0, read_off = 0, sum = 0, off = 0, bonus = 0;
      for (int j = 0; s.seven && j < s.n; ++j) {
        read += column[j].sum * at(4, t, head + j);
        read_off += (column[j].off + s.n * kEps * column[j].sum) * at(4, t, head + j);
      }
      for (int j = 0; j < s.n; ++j) {
        const double w = d.row(c, 3, sequence, t)[head + j], r = at(0, t, head + j), k = at(1, t, head + j);
        const double rate = s.seven ? 0.606531 / (1 + std::exp(-w)) : std::exp(w);
        if (!s.seven) sum += column[j].sum * r, off += column[j].off * r;
        column[j].decay(std::exp(-rate), kExp + rate * (kExp + 4 * kEps));
        column[j].add(k * at(2, t, i), kEps * k * at(2, t, i));
        if (s.seven) {
          column[j].add(at(5, t, head + j) * read, at(5, t, head + j) * (read_off + kEps * read));
          sum += column[j].sum * r, off += column[j].off * r;
        }
        bonus += r * k * std::abs(c.weights[0].as<float>()[head + j]);
      }
      bounds.push_back(off + (s.n + 2) * kEps * sum + kTiny);
      bonus_bounds.push_back((s.n / 16 + 10) * kEps * bonus * at(2, t, i) + kTiny);
    }
  }
}

void add_wkv(std::vector<Entry>& list, const WkvShape& s, bool quick) {
  const std::string text = concat("h=", s.heads, " n=", s.n, s.seven ? " rwkv7" : " rwkv6", s.view ? " view" : "",
                                  s.longest != 10 ? concat(" t=", s.longest) : "");
  add(list, Op::kWkv, text, quick, [=](RecurrentCase& c, RecurrentData& d, Random& random) {
    c.rows.assign(s.seven ? 6 : 4, {s.heads, s.n});
    c.lengths = {s.longest, 1, 5};
    c.view = s.view;
    c.state_values = int64_t{s.heads} * s.n * s.n;
    c.weights = {vector_leaf(int64_t{s.heads} * s.n, random)};
    c.build = [=](Graph& g, const std::vector<ValueId>& in, std::span<const Weight> w, const CacheDesc& state) {
      Graph::WkvInputs inputs = {in[0], in[1], in[2], in[3]};
      if (s.seven) inputs.a = in[4], inputs.b = in[5];
      const Graph::Wkv made = g.wkv(inputs, w[0], state);
      return std::vector{made.out, made.bonus};
    };
    d = draw(c, random);
    for (size_t i = 4; i < d.inputs.size(); ++i) normalize(d.inputs[i], s.n);
    return bounds_of(c, 2, [&](size_t sequence, RecurrentBounds& bounds) {
      bound_wkv(s, c, d, sequence, bounds[0][sequence], bounds[1][sequence]);
    });
  });
}

}  // namespace

void add_recurrent_cases(std::vector<Entry>& list) {
  for (const int width : {2, 3, 4, 7, kMaxConvWidth}) {
    add_conv(list, {.channels = 20, .width = width, .bias = width == 4, .silu = width != 3}, width <= 4);
    add_conv(list, {.channels = 530, .width = width, .silu = true, .view = true}, width == 4);
  }
  add_conv(list, {.channels = 20, .width = 3, .dilation = 2}, true);
  add_conv(list, {.channels = 300, .width = 4, .dilation = 3, .bias = true, .silu = true, .view = true}, true);
  add_ngrams(list, DataType::kF32, 2, 1, true);
  add_ngrams(list, DataType::kF16, 3, 8, true);
  add_ngrams(list, DataType::kQ8_0, 4, 2, true);
  add_pool(list, {.parts = 1, .dim = 20, .block = 8}, true);
  add_pool(list, {.parts = 2, .dim = 37, .block = 4, .view = true}, true);
  add_pool(list, {.parts = 2, .dim = 130, .block = 3, .offsets = false}, true);
  add_pool(list, {.parts = 1, .dim = 512, .block = 128}, false);
  for (const int channels : {1, 17, 64}) add_shift(list, channels, channels == 17);
  add_scan(list, {.heads = 37, .dim = 1, .groups = 1, .n = 16, .per_value = true}, true);
  add_scan(list, {.heads = 5, .dim = 1, .groups = 1, .n = 8, .per_value = true, .view = true}, true);
  add_scan(list, {.heads = 4, .dim = 8, .groups = 2, .n = 24, .skip = false}, true);
  add_scan(list, {.heads = 6, .dim = 64, .groups = 3, .n = 128, .view = true}, true);
  add_scan(list, {.heads = 3, .dim = 3, .groups = 1, .n = 5, .per_value = true}, false);
  add_scan(list, {.heads = 2, .dim = 5, .groups = 2, .n = 300}, true);
  add_delta(list, {.groups = 2, .n = 16, .heads = 4, .dim = 16}, true);
  add_delta(list, {.groups = 2, .n = 12, .heads = 6, .dim = 20, .tiled = true, .view = true}, true);
  add_delta(list, {.groups = 2, .n = 16, .heads = 2, .dim = 70, .per_channel = true}, true);
  add_delta(list, {.groups = 1, .n = 128, .heads = 2, .dim = 128, .view = true}, true);
  add_delta(list, {.groups = 3, .n = 33, .heads = 3, .dim = 1, .per_channel = true, .view = true}, false);
  add_delta(list, {.groups = 2, .n = 16, .heads = 2, .dim = 24, .per_channel = true, .lowest_decay = -2.5f}, true);
  add_delta(list, {.groups = 1, .n = 20, .heads = 3, .dim = 70, .view = true, .lowest_decay = -5}, true);
  add_delta(list, {.groups = 1, .n = 24, .heads = 2, .dim = 40, .longest = 37}, true);
  add_delta(list, {.groups = 2, .n = 24, .heads = 2, .dim = 40, .per_channel = true, .longest = 37}, true);
  add_delta(list, {.groups = 1, .n = 256, .heads = 1, .dim = 33, .per_channel = true}, true);
  for (const bool seven : {false, true}) {
    add_wkv(list, {.heads = 2, .n = 64, .seven = seven}, true);
    add_wkv(list, {.heads = 1, .n = 33, .seven = seven, .longest = 37}, true);
    add_wkv(list, {.heads = 3, .n = 20, .seven = seven, .view = true}, true);
    add_wkv(list, {.heads = 1, .n = 5, .seven = seven}, false);
  }
}

TEST_CASE("ngram_embed") { run_cases(Op::kNgramEmbed); }
TEST_CASE("short_conv") { run_cases(Op::kShortConv); }
TEST_CASE("gated_pool") { run_cases(Op::kGatedPool); }
TEST_CASE("token_shift") { run_cases(Op::kTokenShift); }
TEST_CASE("selective_scan") { run_cases(Op::kSelectiveScan); }
TEST_CASE("delta_rule") { run_cases(Op::kDeltaRule); }
TEST_CASE("wkv") { run_cases(Op::kWkv); }

}  // namespace infer::test
