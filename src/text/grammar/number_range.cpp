#include "src/text/grammar/number_range.h"

#include <algorithm>

namespace infer::grammar {
namespace {

constexpr uint32_t kMaxDigits = 40;
// Doubles distinguish all numbers of this many digits; with more, a number within the bounds could be parsed as one
// outside.
constexpr int kExactDigits = 15;

int64_t power_of_ten(int n) {
  int64_t value = 1;
  for (; n > 0; --n) value *= 10;
  return value;
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
int64_t ceil_div(int64_t a, int64_t b) { return -floor_div(-a, b); }

// The spellings of numbers >= 0 whose last `point` digits follow a decimal point.
class DigitRange {
 public:
  DigitRange(Rules& rules, int point) : rules_(rules), point_(point) {}

  // low <= scaled value <= high; nullopt: no upper bound.
  void add(int64_t low, std::optional<int64_t> high) {
    low = std::max<int64_t>(low, 0);
    for (int n = point_ + 1; n <= 19; ++n) {
      const int64_t first = n == point_ + 1 ? 0 : power_of_ten(n - 1);
      const int64_t last = n == 19 ? INT64_MAX : power_of_ten(n) - 1;
      if (low > last) continue;
      if (high && *high < first) break;
      add_of_length(std::max(low, first), high ? std::min(*high, last) : last, n);
      if (!high) {
        // All numbers with more digits.
        add_longer(n);
        break;
      }
    }
  }

  ExprId expr() { return rules_.choice(std::move(choices_)); }

 private:
  using Digits = std::vector<CodeRange>;

  void add_longer(int n_digits) {
    std::vector<ExprId> parts = {rules_.code_point({{'1', '9'}})};
    const auto more = static_cast<uint32_t>(n_digits - point_);
    parts.push_back(rules_.repeat(rules_.code_point({{'0', '9'}}), more, std::max(more, kMaxDigits)));
    if (point_ > 0) {
      parts.push_back(rules_.bytes("."));
      parts.push_back(digits(static_cast<uint32_t>(point_)));
    }
    choices_.push_back(rules_.sequence(std::move(parts)));
  }

  ExprId digits(uint32_t n) { return rules_.repeat(rules_.code_point({{'0', '9'}}), n, n); }

  // Numbers of n digits: for each prefix shared with `low`, those with a larger next digit, and so on.
  void add_of_length(int64_t low, int64_t high, int n) {
    const std::string a = padded(low, n), b = padded(high, n);
    size_t common = 0;
    while (common < a.size() && a[common] == b[common]) ++common;
    if (common == a.size()) return add_digits(a, common, 0, 0);
    if (common + 1 == a.size()) return add_digits(a, common, a[common], b[common]);
    add_digits(a, common, static_cast<char>(a[common] + 1), static_cast<char>(b[common] - 1));
    for (size_t i = common + 1; i < a.size(); ++i) {
      const bool last = i + 1 == a.size();
      add_digits(a, i, static_cast<char>(last ? a[i] : a[i] + 1), '9');
      add_digits(b, i, '0', static_cast<char>(last ? b[i] : b[i] - 1));
    }
  }

  static std::string padded(int64_t value, int n) {
    std::string text = std::to_string(value);
    return std::string(static_cast<size_t>(std::max(0, n - static_cast<int>(text.size()))), '0') + text;
  }

  // The first `at` digits of `text`, then a digit from `first` to `last`, then any digits.
  void add_digits(const std::string& text, size_t at, char first, char last) {
    if (at < text.size() && first > last) return;
    std::vector<ExprId> parts;
    const size_t dot = text.size() - static_cast<size_t>(point_);
    for (size_t i = 0; i < text.size(); ++i) {
      if (i == dot) parts.push_back(rules_.bytes("."));
      const auto low = static_cast<uint8_t>(i < at ? text[i] : i == at ? first : '0');
      const auto high = static_cast<uint8_t>(i < at ? text[i] : i == at ? last : '9');
      parts.push_back(rules_.code_point({{low, high}}));
    }
    choices_.push_back(rules_.sequence(std::move(parts)));
  }

  Rules& rules_;
  int point_;
  std::vector<ExprId> choices_;
};

// Bounds as multiples of 10^-digits.
struct Scaled {
  std::optional<int64_t> min, max;
  int digits = 0;
};

Scaled scale(const NumberRange& range) {
  Scaled out;
  out.digits = std::max(range.min ? range.min->digits : 0, range.max ? range.max->digits : 0);
  if (range.min) out.min = range.min->scaled * power_of_ten(out.digits - range.min->digits);
  if (range.max) out.max = range.max->scaled * power_of_ten(out.digits - range.max->digits);
  return out;
}

// min <= value <= max in units of 10^-point, spelled with `point` digits after the point.
ExprId signed_between(Rules& rules, std::optional<int64_t> min, std::optional<int64_t> max, int point) {
  std::vector<ExprId> choices;
  if (!max || *max >= 0) {
    DigitRange positive(rules, point);
    positive.add(min.value_or(0), max);
    choices.push_back(positive.expr());
  }
  if (!min || *min < 0) {
    DigitRange negative(rules, point);
    std::optional<int64_t> high;
    if (min) high = -*min;
    negative.add(max ? std::max<int64_t>(1, -*max) : 1, high);
    choices.push_back(rules.sequence({rules.bytes("-"), negative.expr()}));
  }
  return rules.choice(std::move(choices));
}

// Bounds in units of 10^-point.
struct Steps {
  std::optional<int64_t> min, max;
};

Steps exact_steps(const NumberRange& range, const Scaled& scaled, int point) {
  const int64_t unit = power_of_ten(scaled.digits - point);
  Steps steps;
  if (scaled.min) steps.min = range.min_exclusive ? floor_div(*scaled.min, unit) + 1 : ceil_div(*scaled.min, unit);
  if (scaled.max) steps.max = range.max_exclusive ? ceil_div(*scaled.max, unit) - 1 : floor_div(*scaled.max, unit);
  return steps;
}

}  // namespace

std::optional<Decimal> parse_decimal(std::string_view text) {
  const bool negative = !text.empty() && text[0] == '-';
  if (negative) text.remove_prefix(1);
  Decimal out;
  bool after_point = false;
  int n_digits = 0;
  for (const char c : text) {
    if (c == '.' && !after_point) {
      after_point = true;
      continue;
    }
    if (c < '0' || c > '9' || ++n_digits > 16) return std::nullopt;
    out.scaled = out.scaled * 10 + (c - '0');
    out.digits += after_point ? 1 : 0;
  }
  while (out.digits > 0 && out.scaled % 10 == 0) out.scaled /= 10, --out.digits;
  if (negative) out.scaled = -out.scaled;
  return out;
}

ExprId integer_between(Rules& rules, const NumberRange& range) {
  const Steps steps = exact_steps(range, scale(range), 0);
  if (steps.min && steps.max && *steps.min > *steps.max) return rules.never();
  return signed_between(rules, steps.min, steps.max, 0);
}

ExprId number_between(Rules& rules, const NumberRange& range) {
  const Scaled scaled = scale(range);
  std::vector<ExprId> choices;
  for (int point = 0; point <= scaled.digits; ++point) {
    const Steps steps = exact_steps(range, scaled, point);
    if (steps.min && steps.max && *steps.min > *steps.max) continue;
    choices.push_back(signed_between(rules, steps.min, steps.max, point));
  }
  // Numbers with more digits than the bounds. Truncated to the bounds' digits, such a number moves towards zero by less
  // than one step. So above zero all of [min, max - 1] is inside, and below it all of [min + 1, max]. Numbers equal to
  // a bound but for trailing zeros are left out.
  const auto n_digits = [](std::optional<int64_t> v) { return v ? static_cast<int>(std::to_string(*v).size()) : 0; };
  const int used = std::max({n_digits(scaled.min), n_digits(scaled.max), scaled.digits});
  const auto more = static_cast<uint32_t>(std::clamp(kExactDigits - used, 1, 12));
  const ExprId tail = rules.repeat(rules.code_point({{'0', '9'}}), 1, more);
  const auto add = [&](bool negative) {
    const std::optional<int64_t> low = negative ? scaled.max : scaled.min, high = negative ? scaled.min : scaled.max;
    const auto sign = [&](int64_t v) { return negative ? -v : v; };
    int64_t from = low ? sign(*low) : 0;
    if (high && sign(*high) - 1 < 0) return;
    std::optional<int64_t> to;
    if (high) to = sign(*high) - 1;
    const bool exclusive = low && from >= 0 && (negative ? range.max_exclusive : range.min_exclusive);
    const ExprId dot = rules.bytes(scaled.digits == 0 ? "." : ""), minus = rules.bytes(negative ? "-" : "");
    if (exclusive && (!to || from <= *to)) {
      DigitRange bound(rules, scaled.digits);
      bound.add(from, from);
      // At least one of the further digits is not zero.
      std::vector<ExprId> tails;
      for (uint32_t zeros = 0; zeros < more; ++zeros) {
        tails.push_back(rules.sequence({rules.bytes(std::string(zeros, '0')), rules.code_point({{'1', '9'}}),
                                        rules.repeat(rules.code_point({{'0', '9'}}), 0, more - 1 - zeros)}));
      }
      const ExprId above = rules.choice(std::move(tails));
      choices.push_back(rules.sequence({minus, bound.expr(), dot, above}));
      ++from;
    }
    from = std::max<int64_t>(from, 0);
    if (to && from > *to) return;
    DigitRange digits(rules, scaled.digits);
    digits.add(from, to);
    choices.push_back(rules.sequence({minus, digits.expr(), dot, tail}));
  };
  add(false);
  add(true);
  return rules.choice(std::move(choices));
}

}  // namespace infer::grammar
