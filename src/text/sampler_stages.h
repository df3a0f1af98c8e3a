// The stages of the sampling chain, each a function of a list of candidates. Probabilities are the softmax over the
// remaining candidates. Pure functions; sums are in double, in list order.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "src/text/vocabulary.h"

namespace infer {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Candidate {
  TokenId id;
  float logit;  // finite
};

// Higher logit first, then lower id: a total order, so results do not depend on the sorting algorithm.
inline bool better(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

struct Candidates {
  std::vector<Candidate> items;
  bool best_first = false;  // sorted by better(), else by ascending id; no stage changes the order
};

// Scratch for a selection: a candidate, its sort key, and its probability as an integer.
struct RankedCandidate {
  double key;
  uint64_t mass;
  Candidate item;
};

// The token with the highest logit, with the lowest id among equals; kNoToken if all are -inf. Throws
// Error(kInvalidArgument) on NaN or +inf.
TokenId find_best(std::span<const float> logits);

// The smallest logit that top-n-sigma keeps: max - n * (standard deviation of all logits above -inf).
float top_n_sigma_floor(std::span<const float> logits, float n);

// Fills `out` with the k largest logits (k <= 0: all) that are >= floor and above -inf. Short lists are sorted best
// first, longer ones by ascending id.
void select_top(std::span<const float> logits, float floor, int64_t k, Candidates& out);

// For chains in another order than the default, whose candidates are not selected by select_top(). They keep the order.
void keep_top_n_sigma(Candidates& c, float n);  // 0 or less: all
void keep_top_k(Candidates& c, int64_t k);      // 0 or less: all
// Divides the logits by the temperature; 0 or less: keeps only the best candidate.
void divide_by_temperature(Candidates& c, double temperature);

// Each keeps at least one candidate of a non-empty list, takes linear time and preserves the order. `work` is scratch.
void keep_typical(Candidates& c, double p, std::vector<RankedCandidate>& work);
void keep_top_p(Candidates& c, double p, std::vector<RankedCandidate>& work);
void keep_min_p(Candidates& c, double p);
// Removes all but the least probable of the candidates with probability >= threshold.
void exclude_top_choices(Candidates& c, double threshold);
// Drops candidates whose surprise -log2(p) at temperature t exceeds mu bits; the best one stays.
void keep_surprise_up_to(Candidates& c, double temperature, double mu);

// llama.cpp's dynamic temperature: low + (high - low) * (entropy / its maximum)^exponent.
double dynamic_temperature(const Candidates& c, double temperature, double range, double exponent);

// log(sum(exp((logit - max logit) / t))) over the list.
double log_sum_exp_above_best(const Candidates& c, double temperature);
float best_logit(const Candidates& c);

// The candidate with the largest logit / t + Gumbel noise of its token: a sample from softmax(logits / t). Ties go to
// the lower id. REQUIRES: the list is not empty, t > 0.
Candidate gumbel_argmax(const Candidates& c, double temperature, uint64_t seed, int64_t position);

}  // namespace infer
