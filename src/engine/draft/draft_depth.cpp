#include "src/engine/draft/draft_depth.h"

#include <algorithm>
#include <cmath>

#include "ggml-like/step_inputs.h"  // bucket_size

namespace infer {
namespace {

constexpr double kRateWeight = 0.12;                        // weight of a verified draft in the mean acceptance rate
constexpr double kForgetWeight = 0.02;                      // pull of a step without drafts towards the usual rate
constexpr double kCostWeight = 0.1, kSettledWeight = 0.02;  // minimum weight of a step in the mean costs
constexpr double kOutlier = 2;       // a step's time counts as at most this many times its expected time
constexpr int64_t kForgotten = 512;  // steps after which a measurement is stale and is repeated
// Assumed cost of a row not measured yet, as a share of a step with one row per sequence. Low, to get it measured.
constexpr double kGuessedRow = 0.08;
constexpr double kGuessedDraft = 0.15, kGuessedDraftToken = 0.02;  // shares of a target step, before any measurement
constexpr int kDepthsToBegin = 8;
constexpr double kPromptShare = 0.5;  // share of a step without drafts by which prompts of the draft model may delay it
constexpr int32_t kLeastPrompt = 32, kMostPrompt = 1 << 20;  // tokens
constexpr double kWorthBeginning = 1.5;                      // the saving must exceed the cost this many times
constexpr double kLeastGain = 0.03;                          // drafts with fewer expected accepted tokens are ignored
constexpr double kToStart = 1.05, kToGoOn = 1.02;            // required gain over the tokens per second without drafts
constexpr double kMayLose = 0.006;                           // share of the total time
constexpr double kFirstLoss = 4, kMostSaved = 4;             // steps
constexpr int kPlainEvery = 64;  // steps after which a step without drafts is measured again

}  // namespace

void AcceptanceRate::record(int accepted, int proposed) {
  for (int i = 0; i < accepted; ++i) rate_ += kRateWeight * (1 - rate_);
  if (accepted < proposed) rate_ -= kRateWeight * rate_;
}

void AcceptanceRate::forget() { rate_ += kForgetWeight * (usual_ - rate_); }

StepCosts::Key StepCosts::key(int sequences, int rows) { return {bucket_size(sequences), bucket_size(rows)}; }

bool StepCosts::record(int sequences, int rows, double seconds) {
  Mean& mean = means_[key(sequences, rows)];
  if (!known(mean)) mean.n = std::min(mean.n, 1);
  mean.last = ++n_;
  if (++mean.n <= 2) {
    mean.seconds = mean.settled = seconds;
    return mean.n == 2;
  }
  const auto add = [&](double& to, double weight) {
    to += std::max(weight, 1.0 / (mean.n - 1)) * (std::min(seconds, kOutlier * to) - to);
  };
  add(mean.seconds, kCostWeight);
  add(mean.settled, kSettledWeight);
  return true;
}

bool StepCosts::known(const Mean& mean) const { return mean.n >= 2 && n_ - mean.last < kForgotten; }

const StepCosts::Mean* StepCosts::plain(int sequences) const {
  const auto found = means_.find(key(sequences, sequences));
  return found == means_.end() || !known(found->second) ? nullptr : &found->second;
}

double StepCosts::settled(int sequences) const {
  const Mean* mean = plain(sequences);
  return mean ? mean->settled : 0;
}

double StepCosts::expect(int sequences, int rows) const {
  if (!plain(sequences)) return 0;
  const double plain = this->plain(sequences)->seconds;
  const Key asked = key(sequences, rows);
  // The nearest measured steps with the same number of sequences and fewer, or more, rows.
  int below = sequences, above = 0;
  double below_seconds = plain, above_seconds = 0;
  for (const auto& [at, mean] : means_) {
    if (at.first != asked.first || at.second < bucket_size(sequences) || !known(mean)) continue;
    if (at.second <= asked.second) {
      below = at.second;
      below_seconds = mean.seconds;
    } else if (above == 0) {
      above = at.second;
      above_seconds = mean.seconds;
    }
  }
  if (below >= asked.second) return below_seconds;
  if (above == 0) return std::max(below_seconds, plain) + kGuessedRow * plain * (rows - below) / std::sqrt(sequences);
  return below_seconds + (above_seconds - below_seconds) * (rows - below) / (above - below);
}

bool DraftDepth::may_lose(int sequences) const {
  const double step = costs_.expect(sequences, sequences);
  return balance_ > -(kMayLose * seconds_ + kFirstLoss * step);
}

std::vector<int> DraftDepth::choose(int sequences, std::span<const Candidate> candidates, int most_rows) {
  std::vector<int> depths(candidates.size());
  expected_drafting_ = 0;
  const double plain = costs_.expect(sequences, sequences);
  if (plain <= 0 || !may_lose(sequences) || since_plain_ >= kPlainEvery) return depths;
  struct Draft {
    double gain;  // probability that it is accepted
    size_t candidate;
  };
  std::vector<Draft> drafts;
  for (size_t i = 0; i < candidates.size(); ++i) {
    double gain = 1;
    for (int d = 0; d < candidates[i].available; ++d) {
      gain *= candidates[i].acceptance;
      if (gain < kLeastGain) break;
      drafts.push_back({gain, i});
    }
  }
  // Stable, so that the drafts of a candidate stay in their order.
  std::stable_sort(drafts.begin(), drafts.end(), [](const Draft& a, const Draft& b) { return a.gain > b.gain; });
  const size_t room = static_cast<size_t>(std::max(most_rows - sequences, 0));
  drafts.resize(std::min(drafts.size(), room));
  double tokens = sequences, best = (on_ ? kToGoOn : kToStart) * sequences / plain;  // tokens per second
  std::vector<int> tried(candidates.size());
  for (size_t n = 1; n <= drafts.size(); ++n) {
    tokens += drafts[n - 1].gain;
    ++tried[drafts[n - 1].candidate];
    const double verify = costs_.expect(sequences, sequences + static_cast<int>(n));
    const double rate = tokens / (verify + draft_seconds(candidates, tried));
    if (rate <= best) continue;
    best = rate;
    depths = tried;
  }
  expected_drafting_ = draft_seconds(candidates, depths);
  if (!drafts.empty()) on_ = std::any_of(depths.begin(), depths.end(), [](int depth) { return depth > 0; });
  return depths;
}

double DraftDepth::draft_step(int sequences) const {
  for (int n = sequences; n > 0; --n) {
    if (const double known = draft_costs_.expect(n, n); known > 0) return known;
  }
  return kGuessedDraft * costs_.expect(1, 1);
}

double DraftDepth::draft_seconds(std::span<const Candidate> candidates, std::span<const int> depths) const {
  double seconds = 0;
  for (int step = 1;; ++step) {
    int n = 0;
    for (size_t i = 0; i < depths.size(); ++i) n += candidates[i].by_model && depths[i] >= step;
    if (n == 0) return seconds;
    seconds += draft_step(n);
  }
}

void DraftDepth::record_draft_prompt(int tokens, double seconds) {
  const double token = seconds / tokens;
  draft_token_ = draft_token_ > 0 ? draft_token_ + kCostWeight * (token - draft_token_) : token;
}

double DraftDepth::draft_prompt_token(int sequences) const {
  return draft_token_ > 0 ? draft_token_ : kGuessedDraftToken * costs_.expect(sequences, sequences) / sequences;
}

int32_t DraftDepth::prompt_tokens(int sequences) const {
  const double token = draft_prompt_token(sequences);
  if (token <= 0) return kLeastPrompt;
  const double tokens = kPromptShare * costs_.expect(sequences, sequences) / token;
  return static_cast<int32_t>(std::clamp<double>(tokens, kLeastPrompt, kMostPrompt));
}

bool DraftDepth::pays_to_begin(int sequences, int64_t lag, int64_t remaining, double acceptance) const {
  const double plain = costs_.expect(sequences, sequences);
  if (plain <= 0) return false;
  // Assumes the same depth for all sequences, and takes the best one.
  double tokens = 1, gain = 1, best = 1;
  for (int depth = 1; depth <= kDepthsToBegin; ++depth) {
    gain *= acceptance;
    tokens += gain;
    const double seconds = costs_.expect(sequences, sequences * (1 + depth)) + depth * draft_step(sequences);
    best = std::max(best, tokens * plain / seconds);
  }
  const double saved = static_cast<double>(remaining) * plain / sequences * (1 - 1 / best);
  return saved > kWorthBeginning * static_cast<double>(lag) * draft_prompt_token(sequences);
}

void DraftDepth::record(int sequences, int rows, int tokens, double seconds, double draft_seconds) {
  seconds_ += seconds + draft_seconds;
  since_plain_ = rows == sequences ? 0 : since_plain_ + 1;
  const double plain = costs_.settled(sequences), expected = costs_.expect(sequences, rows);
  if (!costs_.record(sequences, rows, seconds) || rows == sequences) return;
  // A stall of the system says nothing about drafts: the step would have been delayed without them too.
  const double verified = std::min(seconds, kOutlier * expected);
  const double drafted =
      expected_drafting_ > 0 ? std::min(draft_seconds, kOutlier * expected_drafting_) : draft_seconds;
  balance_ = std::min(balance_ + plain * tokens / sequences - verified - drafted, kMostSaved * plain);
}

}  // namespace infer
