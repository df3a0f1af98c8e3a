// The stages of the sampling chain, each a function on a list of candidates. Probabilities are the softmax of the
// candidates that are left. Pure functions of their arguments; sums run in double, in the order of the list.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/text/vocabulary.h"

namespace infer {

struct Candidate {
  TokenId id;
  float logit;  // finite
};

// Higher logit first, then lower id: a total order, so that results do not depend on the sorting algorithm.
inline bool better(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

struct Candidates {
  std::vector<Candidate> items;
  bool best_first = false;  // sorted by better(); else in ascending order of ids. No stage changes the order
};

// Scratch of a selection: a candidate, what it is ranked by, and its probability as a whole number.
struct RankedCandidate {
  double key;
  uint64_t mass;
  Candidate item;
};

// The token of the highest logit, the lowest id among equals; kNoToken when all are -inf.
// Throws Error(kInvalidArgument) on NaN or +inf.
TokenId find_best(std::span<const float> logits);

// The smallest logit that top-n-sigma keeps: max - n * (standard deviation of all logits above -inf).
float top_n_sigma_floor(std::span<const float> logits, float n);

// Fills `out` with the k best logits (k <= 0: all) among those that are >= floor and above -inf: best first where they
// are few, else in ascending order of ids.
void select_top(std::span<const float> logits, float floor, int64_t k, Candidates& out);

// Each keeps at least one candidate of a list that is not empty, in linear time, and leaves the order of those kept as
// it was. `work` is scratch.
void keep_typical(Candidates& c, double p, std::vector<RankedCandidate>& work);
void keep_top_p(Candidates& c, double p, std::vector<RankedCandidate>& work);
void keep_min_p(Candidates& c, double p);
// Removes all but the least probable of the candidates with probability >= threshold.
void exclude_top_choices(Candidates& c, double threshold);
// Drops candidates with surprise -log2(p) at temperature t above mu bits; the best one stays.
void keep_surprise_up_to(Candidates& c, double temperature, double mu);

// llama.cpp's dynamic temperature: low + (high - low) * (entropy / its maximum)^exponent.
double dynamic_temperature(const Candidates& c, double temperature, double range, double exponent);

// log of the sum of exp((logit - max logit) / t) over the list.
double log_sum_exp_above_best(const Candidates& c, double temperature);
float best_logit(const Candidates& c);

// The candidate with the largest logit / t + Gumbel noise of its token: a sample from softmax(logits / t).
// Equal values go to the lower id. The list must not be empty, t > 0.
Candidate gumbel_argmax(const Candidates& c, double temperature, uint64_t seed, int64_t position);

}  // namespace infer
