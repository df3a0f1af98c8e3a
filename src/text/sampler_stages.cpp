#include "src/text/sampler_stages.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "src/text/ieee_math.h"
#include "src/text/sampler_noise.h"

namespace infer {
namespace {

constexpr double kLn2 = 0.693147180559945309417;

constexpr size_t kMostSorted = 1024;  // longer lists stay in order of ascending id

// Probabilities as integers, whose sums are exact: what a stage keeps does not depend on the order in which the
// selection below adds them up.
__extension__ typedef unsigned __int128 Mass;
constexpr double kMassOfOne = 0x1p60;

uint64_t mass_of(double probability) { return static_cast<uint64_t>(probability * kMassOfOne); }

bool goes_before(const RankedCandidate& a, const RankedCandidate& b) {
  return a.key < b.key || (a.key == b.key && better(a.item, b.item));
}

// Divides the range of keys into intervals and keeps only the candidates of the interval where the cumulative mass
// reaches `target` (otherwise the last interval). Returns the mass before them.
Mass narrow(std::vector<RankedCandidate>& list, Mass target) {
  constexpr size_t kIntervals = 1024;
  const auto [least, most] =
      std::minmax_element(list.begin(), list.end(), [](auto& a, auto& b) { return a.key < b.key; });
  const double low = least->key, scale = (kIntervals - 1) / (most->key - least->key);
  if (list.size() < 4 * kIntervals || !(scale < kMassOfOne)) return 0;  // a short list, or keys that are nearly equal
  const auto interval = [&](const RankedCandidate& ranked) { return static_cast<size_t>((ranked.key - low) * scale); };
  std::vector<Mass> masses(kIntervals);
  for (const RankedCandidate& ranked : list) masses[interval(ranked)] += ranked.mass;
  Mass before = 0;
  size_t found = 0;
  while (found < interval(*most) && before + masses[found] < target) before += masses[found++];
  std::erase_if(list, [&](const RankedCandidate& ranked) { return interval(ranked) != found; });
  return before;
}

// Sorted by goes_before(), the last candidate of the shortest prefix whose mass reaches `target`, or the last of the
// list if none does. Linear time: each iteration discards half of the candidates. REQUIRES: the list is not empty.
RankedCandidate last_needed(std::vector<RankedCandidate>& list, Mass target) {
  const Mass earlier = narrow(list, target);
  target = target > earlier ? target - earlier : 0;
  auto begin = list.begin(), end = list.end();
  Mass before = 0;
  while (end - begin > 1) {
    const auto middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end, goes_before);
    Mass with_half = before;
    for (auto it = begin; it != middle; ++it) with_half += it->mass;
    if (with_half >= target) {
      end = middle;
    } else {
      before = with_half;
      begin = middle;
    }
  }
  return *begin;
}

}  // namespace

TokenId find_best(std::span<const float> logits) {
  // Sixteen running maxima fill the vector units; the index is looked up afterwards.
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
                expected_found("sampling", concat("logit of token ", at), "a finite number or -inf", logits[at]));
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
  // Whenever the buffer, which holds a few times k, is full, it is cut down to the k best; from then on only larger
  // logits enter. Ids ascend, so a later token equal to the k-th logit never outranks it.
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
  if (n > 0 && n < items.size()) std::nth_element(items.begin(), items.begin() + n - 1, items.end(), better);
  items.resize(n);
  out.best_first = n <= kMostSorted;
  if (out.best_first) {
    std::sort(items.begin(), items.end(), better);
    return;
  }
  const Candidate last = *std::max_element(items.begin(), items.end(), better);
  items.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    const Candidate item{static_cast<TokenId>(i), logits[i]};
    if (!better(last, item)) items.push_back(item);
  }
}

void keep_top_n_sigma(Candidates& c, float n) {
  if (n <= 0 || c.items.empty()) return;
  std::vector<float> logits;
  for (const Candidate& item : c.items) logits.push_back(item.logit);
  const float floor = top_n_sigma_floor(logits, n);
  std::erase_if(c.items, [floor](const Candidate& item) { return item.logit < floor; });
}

void keep_top_k(Candidates& c, int64_t k) {
  const auto keep = static_cast<size_t>(std::max<int64_t>(k, 0));
  if (keep == 0 || keep >= c.items.size()) return;
  std::vector<Candidate> ranked = c.items;
  std::nth_element(ranked.begin(), ranked.begin() + static_cast<ptrdiff_t>(keep) - 1, ranked.end(), better);
  const Candidate last = ranked[keep - 1];
  std::erase_if(c.items, [&](const Candidate& item) { return better(last, item); });
}

void divide_by_temperature(Candidates& c, double temperature) {
  if (temperature <= 0) {
    c.items = {*std::min_element(c.items.begin(), c.items.end(), better)};
    return;
  }
  for (Candidate& item : c.items) item.logit = static_cast<float>(item.logit / temperature);
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
  for (const Candidate& item : c.items) sum += ieee_exp_nonpositive((item.logit - best) / temperature);
  return ieee_log(sum);
}

void keep_typical(Candidates& c, double p, std::vector<RankedCandidate>& work) {
  if (p >= 1 || c.items.size() < 2) return;
  const double shift = best_logit(c) + log_sum_exp_above_best(c, 1);
  double entropy = 0;
  work.clear();
  for (const Candidate& item : c.items) {
    const double log_p = item.logit - shift;
    const double probability = ieee_exp_nonpositive(std::min(log_p, 0.0));
    entropy -= probability * log_p;
    work.push_back({0, mass_of(probability), item});
  }
  // The distance between a candidate's surprise and the expected surprise.
  const auto distance = [&](const Candidate& item) { return std::abs((shift - item.logit) - entropy); };
  for (RankedCandidate& ranked : work) ranked.key = distance(ranked.item);
  const RankedCandidate last = last_needed(work, Mass{mass_of(p)} + 1);
  std::erase_if(c.items, [&](const Candidate& item) { return goes_before(last, {distance(item), 0, item}); });
}

void keep_top_p(Candidates& c, double p, std::vector<RankedCandidate>& work) {
  if (p >= 1 || c.items.empty()) return;
  const double best = best_logit(c);
  Mass sum = 0;
  work.clear();
  for (const Candidate& item : c.items) {
    work.push_back({-item.logit, mass_of(ieee_exp_nonpositive(item.logit - best)), item});
    sum += work.back().mass;
  }
  const double whole = static_cast<double>(sum);
  const Mass target = static_cast<Mass>(p * whole);
  if (c.best_first) {
    size_t n = 0;
    for (Mass reached = 0; n < work.size() && (n == 0 || reached < target); ++n) reached += work[n].mass;
    c.items.resize(n);
    return;
  }
  // Candidates below (1 - p) * sum / n add up to less than (1 - p) * sum and are not needed; the 0.5 covers rounding.
  const double floor = 0.5 * (1 - p) * whole / static_cast<double>(work.size());
  std::erase_if(work, [floor](const RankedCandidate& ranked) { return static_cast<double>(ranked.mass) < floor; });
  const RankedCandidate last = last_needed(work, target);
  std::erase_if(c.items, [&](const Candidate& item) { return better(last.item, item); });
}

void keep_min_p(Candidates& c, double p) {
  if (p <= 0 || c.items.empty()) return;
  const double floor = best_logit(c) + ieee_log(p);
  std::erase_if(c.items, [floor](const Candidate& item) { return item.logit < floor; });
}

void exclude_top_choices(Candidates& c, double threshold) {
  if (threshold > 0.5 || c.items.size() < 2) return;
  const double best = best_logit(c);
  double sum = 0;
  for (const Candidate& item : c.items) sum += ieee_exp_nonpositive(item.logit - best);
  auto probable = [&](const Candidate& item) { return ieee_exp_nonpositive(item.logit - best) >= threshold * sum; };
  const Candidate* last = nullptr;  // the least probable candidate above the threshold
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
    entropy -= ieee_exp_nonpositive(std::min(log_p, 0.0)) * log_p;
  }
  const double share = std::clamp(entropy / ieee_log(static_cast<double>(c.items.size())), 0.0, 1.0);
  const double power = exponent == 0 ? 1.0 : share == 0 ? 0.0 : ieee_exp(exponent * ieee_log(share));
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
    const double score = scaled - ieee_log(-ieee_log(noise_uniform(bits)));
    if (score > winning || (score == winning && item.id < winner.id)) {
      winning = score;
      winner = item;
    }
  }
  return winner;
}

}  // namespace infer
