#include "src/text/sampler_stages.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "ggml-like/error.h"
#include "src/text/portable_math.h"
#include "src/text/sampler_noise.h"

namespace infer {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr double kLn2 = 0.693147180559945309417;

// Sorts items [begin, end) of the ranking into place, provided that [0, begin) already are.
void sort_ranks(std::vector<Candidate>& items, size_t begin, size_t end) {
  if (end < items.size()) std::nth_element(items.begin() + begin, items.begin() + end - 1, items.end(), better);
  std::sort(items.begin() + begin, items.begin() + end, better);
}

}  // namespace

TokenId find_best(std::span<const float> logits) {
  // Sixteen running maxima keep the processor's vector units busy; the index is looked up afterwards.
  constexpr size_t kLanes = 16;
  float best_of[kLanes];
  std::fill_n(best_of, kLanes, -kInfinity);
  uint32_t bad_of[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes) {
    const float* x = logits.data() + i;
    for (size_t lane = 0; lane < kLanes; ++lane) {
      best_of[lane] = x[lane] > best_of[lane] ? x[lane] : best_of[lane];
      bad_of[lane] |= x[lane] < kInfinity ? 0 : 1;
    }
  }
  for (; i < logits.size(); ++i) {
    best_of[0] = logits[i] > best_of[0] ? logits[i] : best_of[0];
    bad_of[0] |= logits[i] < kInfinity ? 0 : 1;
  }
  const float best = *std::max_element(best_of, best_of + kLanes);
  const bool bad = std::any_of(bad_of, bad_of + kLanes, [](uint32_t b) { return b != 0; });
  if (bad) {
    size_t at = 0;
    while (logits[at] < kInfinity) ++at;
    throw Error(ErrorCode::kInvalidArgument,
                concat("[sampling] logit of token ", at, ": expected a finite number or -inf, found ", logits[at]));
  }
  if (best == -kInfinity) return kNoToken;
  return static_cast<TokenId>(std::find(logits.begin(), logits.end(), best) - logits.begin());
}

float top_n_sigma_floor(std::span<const float> logits, float n) {
  double sum = 0, count = 0, best = -std::numeric_limits<double>::infinity();
  for (const float x : logits) {
    if (x == -kInfinity) continue;
    sum += x;
    count += 1;
    best = x > best ? x : best;
  }
  if (count == 0) return -kInfinity;
  const double mean = sum / count;
  double squares = 0;
  for (const float x : logits) {
    if (x != -kInfinity) squares += (x - mean) * (x - mean);
  }
  const double floor = best - n * std::sqrt(squares / count);
  return static_cast<float>(std::max(floor, static_cast<double>(std::numeric_limits<float>::lowest())));
}

void select_top(std::span<const float> logits, float floor, int64_t k, Candidates& out) {
  auto& items = out.items;
  items.clear();
  float threshold = std::max(floor, std::numeric_limits<float>::lowest());
  if (k <= 0 || static_cast<size_t>(k) >= logits.size()) {
    for (size_t i = 0; i < logits.size(); ++i) {
      if (logits[i] >= threshold) items.push_back({static_cast<TokenId>(i), logits[i]});
    }
    out.best_first = false;
    return;
  }
  // A buffer a few times larger than k is cut back to the k best whenever it is full; from then on only better logits
  // enter. Ids ascend, so a later token with the logit of the k-th never outranks it.
  const size_t keep = static_cast<size_t>(k);
  const size_t capacity = std::max<size_t>(4 * keep, 256);
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] >= threshold)) continue;
    items.push_back({static_cast<TokenId>(i), logits[i]});
    if (items.size() < capacity) continue;
    std::nth_element(items.begin(), items.begin() + keep - 1, items.end(), better);
    items.resize(keep);
    threshold = std::nextafter(items.back().logit, kInfinity);
  }
  const size_t n = std::min(keep, items.size());
  if (n > 0) sort_ranks(items, 0, n);
  items.resize(n);
  out.best_first = true;
}

float best_logit(const Candidates& c) {
  if (c.best_first) return c.items.front().logit;
  float best = -kInfinity;
  for (const Candidate& item : c.items) best = item.logit > best ? item.logit : best;
  return best;
}

double log_sum_exp_above_best(const Candidates& c, double temperature) {
  const double best = best_logit(c);
  double sum = 0;
  for (const Candidate& item : c.items) sum += portable_exp_nonpositive((item.logit - best) / temperature);
  return portable_log(sum);
}

void keep_typical(Candidates& c, double p, std::vector<double>& work) {
  if (p >= 1 || c.items.size() < 2) return;
  auto& items = c.items;
  if (!c.best_first) std::sort(items.begin(), items.end(), better);
  c.best_first = true;
  const double shift = best_logit(c) + log_sum_exp_above_best(c, 1);
  double entropy = 0;
  for (const Candidate& item : items) {
    const double log_p = item.logit - shift;
    entropy -= portable_exp_nonpositive(std::min(log_p, 0.0)) * log_p;
  }
  // Candidates by how far their surprise is from the expected surprise; equal distances stay best first.
  std::vector<double>& distance = work;
  distance.resize(items.size());
  std::vector<uint32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = 0; i < items.size(); ++i) distance[i] = std::abs((shift - items[i].logit) - entropy);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return distance[a] < distance[b] || (distance[a] == distance[b] && a < b); });
  double cumulative = 0;
  size_t n = 0;
  while (n < order.size()) {
    cumulative += portable_exp_nonpositive(std::min(items[order[n]].logit - shift, 0.0));
    ++n;
    if (cumulative > p) break;
  }
  std::sort(order.begin(), order.begin() + n);  // back to best first
  for (size_t i = 0; i < n; ++i) items[i] = items[order[i]];
  items.resize(n);
}

void keep_top_p(Candidates& c, double p) {
  if (p >= 1 || c.items.empty()) return;
  auto& items = c.items;
  const double best = best_logit(c);
  double sum = 0;
  for (const Candidate& item : items) sum += portable_exp_nonpositive(item.logit - best);
  const double target = p * sum;
  if (!c.best_first) {
    // Whatever lies below (1 - p) * sum / n sums to less than (1 - p) * sum and is not needed; the half covers
    // rounding.
    const double floor = best + portable_log(0.5 * (1 - p) * sum / static_cast<double>(items.size()));
    std::erase_if(items, [floor](const Candidate& item) { return item.logit < floor; });
  }
  // The ranking is sorted only as far as the sum needs it.
  size_t sorted = c.best_first ? items.size() : 0;
  size_t block = 256;
  double cumulative = 0;
  size_t n = 0;
  while (n < items.size()) {
    if (n == sorted) {
      sorted = std::min(items.size(), n + block);
      sort_ranks(items, n, sorted);
      block *= 4;
    }
    cumulative += portable_exp_nonpositive(items[n].logit - best);
    ++n;
    if (cumulative >= target) break;
  }
  items.resize(n);
  c.best_first = true;
}

void keep_min_p(Candidates& c, double p) {
  if (p <= 0 || c.items.empty()) return;
  const double floor = best_logit(c) + portable_log(p);
  std::erase_if(c.items, [floor](const Candidate& item) { return item.logit < floor; });
}

void exclude_top_choices(Candidates& c, double threshold) {
  if (threshold > 0.5 || c.items.size() < 2) return;
  const double best = best_logit(c);
  double sum = 0;
  for (const Candidate& item : c.items) sum += portable_exp_nonpositive(item.logit - best);
  auto probable = [&](const Candidate& item) { return portable_exp_nonpositive(item.logit - best) >= threshold * sum; };
  const Candidate* last = nullptr;  // the least probable of the probable
  for (const Candidate& item : c.items) {
    if (probable(item) && (!last || better(*last, item))) last = &item;
  }
  if (!last) return;
  const Candidate kept = *last;
  std::erase_if(c.items, [&](const Candidate& item) { return better(item, kept); });
}

void keep_surprise_up_to(Candidates& c, double temperature, double mu) {
  const double best = best_logit(c);
  const double log_sum = log_sum_exp_above_best(c, temperature);
  const Candidate first = *std::min_element(c.items.begin(), c.items.end(), better);
  std::erase_if(c.items, [&](const Candidate& item) {
    const double surprise = (log_sum - (item.logit - best) / temperature) / kLn2;
    return surprise > mu && item.id != first.id;
  });
}

double dynamic_temperature(const Candidates& c, double temperature, double range, double exponent) {
  const double low = std::max(0.0, temperature - range);
  const double high = std::max(0.0, temperature + range);
  if (c.items.size() < 2) return high;
  const double shift = best_logit(c) + log_sum_exp_above_best(c, 1);
  double entropy = 0;
  for (const Candidate& item : c.items) {
    const double log_p = item.logit - shift;
    entropy -= portable_exp_nonpositive(std::min(log_p, 0.0)) * log_p;
  }
  const double share = std::clamp(entropy / portable_log(static_cast<double>(c.items.size())), 0.0, 1.0);
  const double power = exponent == 0 ? 1.0 : share == 0 ? 0.0 : portable_exp(exponent * portable_log(share));
  return low + (high - low) * power;
}

Candidate gumbel_argmax(const Candidates& c, double temperature, uint64_t seed, int64_t position) {
  const double best = best_logit(c);
  Candidate winner = c.items.front();
  double winning = -std::numeric_limits<double>::infinity();
  for (const Candidate& item : c.items) {
    const double scaled = (item.logit - best) / temperature;  // <= 0
    const uint64_t bits = noise_bits(seed, position, NoiseStream::kToken, static_cast<uint32_t>(item.id));
    // The noise is -log(-log u) <= -log(1 - u), and 1 - u >= 2^-53 * (2^52 - bits): an upper bound without logarithms
    // that rules out nearly all of a large vocabulary. The 0.01 covers rounding.
    const int width = static_cast<int>(std::bit_width((uint64_t{1} << 52) - bits));
    if (scaled + (54 - width) * kLn2 + 0.01 < winning) continue;
    const double score = scaled - portable_log(-portable_log(noise_uniform(bits)));
    if (score > winning || (score == winning && item.id < winner.id)) {
      winning = score;
      winner = item;
    }
  }
  return winner;
}

}  // namespace infer
