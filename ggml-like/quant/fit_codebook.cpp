#include "ggml-like/quant/fit_codebook.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "ggml-like/quant/fit_search.h"

namespace infer {
namespace {

using namespace fit;

// Scales tried for a sub-block, as multiples of the one that puts its largest value on the largest level.
constexpr float kFactors[] = {0.62f, 0.7f, 0.76f, 0.82f, 0.88f, 0.94f, 1.0f, 1.08f, 1.18f, 1.5f, 1.9f};
constexpr int kMaxRounds = 3;

int nearest_scale(float v, int max_scale) {
  return static_cast<int>(std::lround(std::clamp((v - 1) / 2, 0.0f, static_cast<float>(max_scale))));
}

// Sums of w * x * value and w * value^2 over values, for least squares.
struct Sums {
  float xv = 0, vv = 0;
  void add(const Sums& other) { xv += other.xv, vv += other.vv; }
  float gain() const { return vv > 0 ? xv * xv / vv : 0; }
  // The squared error of the choice for this scale, less the sum of w * x^2.
  float error(float scale) const { return scale * (scale * vv - 2 * xv); }
};

class Search {
 public:
  Search(const Values<256>& v, const CodebookFormat& format) : format_(format), book_(format.book) {
    for (int i = 0; i < 256; ++i) x_[i] = v.x[i], w_[i] = v.weighted ? v.w[i] : 1;
    if (format.signs != Signs::kNone) {
      for (int g = 0; g < 32; ++g) take_signs(g);
    }
    for (int i = 0; i < 256; ++i) wx_[i] = w_[i] * x_[i];
  }

  void run(const Values<256>& v, CodebookFit& fit) {
    const int subs = 256 / format_.sub, top = 2 * format_.max_scale + 1;
    float free_scale[16], largest = 0;
    for (int s = 0; s < subs; ++s) {
      free_scale[s] = best_scale(s);
      largest = std::max(largest, free_scale[s]);
    }
    float least = INFINITY;
    uint16_t d = v.to_f16(largest / (format_.unit * static_cast<float>(top)));
    for (int round = 0; round < kMaxRounds; ++round) {
      const float step = v.from_f16(d) * format_.unit;
      CodebookFit next{};
      float error = 0;
      Sums total;
      for (int s = 0; s < subs; ++s) {
        const int middle = nearest_scale(free_scale[s] * inverse(step), format_.max_scale);
        float best = INFINITY;
        Sums sums;
        for (int k = std::max(middle - 1, 0); k <= std::min(middle + 1, format_.max_scale); ++k) {
          const float scale = step * static_cast<float>(2 * k + 1);
          CodebookFit tried{};
          const Sums found = choose(s, scale, tried);
          if (!(found.error(scale) < best)) continue;
          best = found.error(scale);
          sums = found;
          copy_sub_block(tried, s, next);
          next.scale[s] = static_cast<uint8_t>(k);
        }
        error += best;
        const float l = static_cast<float>(2 * next.scale[s] + 1);
        total.add({l * sums.xv, l * l * sums.vv});
      }
      if (!(error < least)) break;
      least = error;
      std::copy(std::begin(signs_), std::end(signs_), next.signs);
      next.d = d;
      fit = next;
      last_ = total;
      if (!(total.vv > 0)) break;
      const uint16_t better = v.to_f16(total.xv / total.vv / format_.unit);
      if (better == d) break;
      d = better;
    }
    // As for other formats, see Projection.
    Projection projection;
    for (int i = 0; i < 256; ++i) projection.xx += static_cast<double>(wx_[i]) * x_[i];
    projection.xy = static_cast<double>(v.from_f16(fit.d)) * format_.unit * last_.xv;
    fit.d = v.to_f16(v.from_f16(fit.d) * projection.factor(kShareReturned));
  }

 private:
  // Makes the values of group g positive. If the number of negative ones must be even, the value that costs the least
  // gets the wrong sign: it stays negative here.
  void take_signs(int g) {
    float* x = x_ + 8 * g;
    uint32_t signs = 0;
    for (int i = 0; i < 8; ++i) {
      if (std::signbit(x[i])) signs |= 1u << i, x[i] = -x[i];
    }
    if (format_.signs == Signs::kEven && __builtin_parity(signs)) {
      int cheapest = 0;
      const auto cost = [&](int i) { return w_[8 * g + i] * x[i] * x[i]; };
      for (int i = 1; i < 8; ++i) {
        if (cost(i) < cost(cheapest)) cheapest = i;
      }
      x[cheapest] = -x[cheapest];
      signs ^= 1u << cheapest;
    }
    signs_[g] = static_cast<uint8_t>(signs);
  }

  // The best entry for the group of values from `at` on, after subtracting `shift` from them.
  Sums choose_entry(int at, float scale, float shift, uint16_t& entry) const {
    const int n = book_.group();
    const auto levels = book_.levels();
    const float inverse_scale = inverse(scale);
    int point = 0;
    for (int i = n - 1; i >= 0; --i) {
      const float v = x_[at + i] * inverse_scale - shift;
      int level = 0;
      for (size_t k = 1; k < levels.size(); ++k) level += 2 * v > static_cast<float>(levels[k - 1] + levels[k]);
      point = point * static_cast<int>(levels.size()) + level;
    }
    Sums best;
    float least = INFINITY;
    for (const uint16_t candidate : book_.nearest(point)) {
      const float* values = book_.values(candidate);
      Lanes xv{}, vv{};
      for (int i = 0; i < n; i += kLanes) {
        const Lanes value = load_lanes(values + i) + shift;
        xv += load_lanes(wx_ + at + i) * value;
        vv += load_lanes(w_ + at + i) * value * value;
      }
      const Sums sums{sum_lanes(xv), sum_lanes(vv)};
      if (!(sums.error(scale) < least)) continue;
      least = sums.error(scale);
      best = sums;
      entry = candidate;
    }
    return best;
  }

  Sums choose_shifted(int at, int count, float scale, float shift, uint16_t* entries) const {
    Sums sums;
    const int n = book_.group();
    for (int i = 0; i < count; i += n) sums.add(choose_entry(at + i, scale, shift, entries[i / n]));
    return sums;
  }

  // The entries of sub-block s for this scale.
  Sums choose(int s, float scale, CodebookFit& fit) const {
    const int at = format_.sub * s, shared = format_.shift_group ? format_.shift_group : format_.sub;
    Sums sums;
    for (int first = at; first < at + format_.sub; first += shared) {
      uint16_t* entries = fit.entry + first / book_.group();
      if (!format_.shift_group) {
        sums.add(choose_shifted(first, shared, scale, 0, entries));
        continue;
      }
      uint16_t minus[4];
      const Sums a = choose_shifted(first, shared, scale, -7, entries);
      const Sums b = choose_shifted(first, shared, scale, -9, minus);
      const bool lower = b.error(scale) < a.error(scale);
      if (lower) std::copy_n(minus, shared / book_.group(), entries);
      for (int g = first / 8; g < (first + shared) / 8; ++g) fit.minus[g] = lower;
      sums.add(lower ? b : a);
    }
    return sums;
  }

  // The scale with the smallest error if it could be any number.
  float best_scale(int s) const {
    const float* x = x_ + format_.sub * s;
    float largest = 0;
    for (int i = 0; i < format_.sub; ++i) largest = std::max(largest, std::abs(x[i]));
    if (largest < kTiny) return 0;
    const auto levels = book_.levels();
    const float outermost = format_.shift_group ? 9 : static_cast<float>(levels.back());
    float best = 0, best_gain = 0;
    const auto improve = [&](float scale) {
      CodebookFit tried{};
      const Sums sums = choose(s, scale, tried);
      if (!(sums.xv > 0 && sums.gain() > best_gain)) return false;
      best_gain = sums.gain();
      best = sums.xv / sums.vv;
      return true;
    };
    for (const float factor : kFactors) improve(largest / outermost * factor);
    if (!format_.shift_group) improve(largest / static_cast<float>(levels.front()));
    while (best > 0 && improve(best)) continue;
    return best;
  }

  void copy_sub_block(const CodebookFit& from, int s, CodebookFit& to) const {
    const int entries = format_.sub / book_.group(), groups = format_.sub / 8;
    std::copy_n(from.entry + entries * s, entries, to.entry + entries * s);
    std::copy_n(from.minus + groups * s, groups, to.minus + groups * s);
  }

  const CodebookFormat& format_;
  const Codebook& book_;
  alignas(16) float x_[256], w_[256], wx_[256];
  uint8_t signs_[32] = {};
  Sums last_;
};

}  // namespace

Codebook::Codebook(int group, const std::vector<uint64_t>& entries, std::initializer_list<int> levels)
    : group_(group), levels_(levels) {
  const int n = static_cast<int>(levels_.size());
  std::vector<int8_t> digits;  // [entries][group]: indices of levels
  for (const uint64_t entry : entries) {
    for (int i = 0; i < group; ++i) {
      const int value = static_cast<int>(entry >> (8 * i) & 255);
      values_.push_back(static_cast<float>(value));
      digits.push_back(static_cast<int8_t>(std::ranges::find(levels_, value) - levels_.begin()));
    }
  }
  int points = 1;
  for (int i = 0; i < group; ++i) points *= n;
  // A distance and an entry in one number, for sorting.
  std::vector<uint32_t> found(entries.size());
  for (int point = 0; point < points; ++point) {
    int8_t digit[8] = {};
    for (int i = 0, rest = point; i < group; ++i, rest /= n) digit[i] = static_cast<int8_t>(rest % n);
    for (size_t e = 0; e < entries.size(); ++e) {
      int distance = 0;
      for (int i = 0; i < group; ++i) {
        const int off = digit[i] - digits[e * static_cast<size_t>(group) + static_cast<size_t>(i)];
        distance += off * off;
      }
      found[e] = static_cast<uint32_t>(distance) << 16 | static_cast<uint32_t>(e);
    }
    std::partial_sort(found.begin(), found.begin() + kNearest, found.end());
    for (int k = 0; k < kNearest; ++k) nearest_.push_back(static_cast<uint16_t>(found[static_cast<size_t>(k)]));
  }
}

CodebookFit fit_codebook(const float* x, const float* importance, const CodebookFormat& format) {
  CodebookFit fit{};
  Values<256> v;
  const Loaded loaded = load(x, importance, v);
  if (loaded == Loaded::kNotFinite) fit.d = kF16NaN;
  if (loaded == Loaded::kValues) Search(v, format).run(v, fit);
  return fit;
}

}  // namespace infer
