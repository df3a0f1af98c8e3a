#include "tools/perplexity/divergence.h"

#include <algorithm>
#include <cmath>

#include "src/text/logprobs.h"

namespace infer {
namespace {

constexpr float kNegligible = -16;  // log-probabilities below this contribute less than the recorded precision

// Interpolates linearly between sorted values.
double quantile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  const double at = share * static_cast<double>(sorted.size() - 1);
  const size_t below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

void Divergence::add(std::span<const float> base, std::span<const float> logits, TokenId next) {
  const double total = log_sum_exp(logits);
  double sum = 0;
  for (size_t i = 0; i < base.size(); ++i) {
    if (base[i] <= kNegligible) continue;
    const double log_p = base[i];
    sum += std::exp(log_p) * (log_p - (static_cast<double>(logits[i]) - total));
  }
  const auto best = [](std::span<const float> values) {
    return std::max_element(values.begin(), values.end()) - values.begin();
  };
  const double base_log_p = base[next], model_log_p = static_cast<double>(logits[next]) - total;
  const double change = std::exp(model_log_p) - std::exp(base_log_p);
  divergences_.push_back(sum);
  divergence_.add(sum);
  base_nll_.add(-base_log_p);
  log_ratio_.add(base_log_p - model_log_p);
  probability_change_.add(change);
  squared_change_ += change * change;
  same_top_ += best(base) == best(logits);
}

Divergence::Summary Divergence::summary() const {
  Summary s;
  s.tokens = divergence_.count();
  if (s.tokens == 0) return s;
  std::vector<double> sorted = divergences_;
  std::sort(sorted.begin(), sorted.end());
  s.mean = divergence_.mean();
  s.standard_error = divergence_.standard_error();
  s.median = quantile(sorted, 0.5);
  s.p90 = quantile(sorted, 0.9);
  s.p95 = quantile(sorted, 0.95);
  s.p99 = quantile(sorted, 0.99);
  s.p999 = quantile(sorted, 0.999);
  s.maximum = sorted.back();
  s.same_top_token = static_cast<double>(same_top_) / static_cast<double>(s.tokens);
  s.base_perplexity = std::exp(base_nll_.mean());
  s.perplexity_ratio = std::exp(log_ratio_.mean());
  s.perplexity_ratio_error = s.perplexity_ratio * log_ratio_.standard_error();
  s.mean_probability_change = probability_change_.mean();
  s.rms_probability_change = std::sqrt(squared_change_ / static_cast<double>(s.tokens));
  return s;
}

}  // namespace infer
