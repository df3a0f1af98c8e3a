// How far a model's distributions are from recorded ones: the Kullback-Leibler divergence of each scored position, and
// statistics derived from it. Natural logarithm.
#pragma once

#include <span>
#include <vector>

#include "tools/perplexity/scoring.h"

namespace infer {

class Divergence {
 public:
  // `base`: recorded log-probabilities; `logits`: the model's; `next`: the token that follows.
  void add(std::span<const float> base, std::span<const float> logits, TokenId next);

  struct Summary {
    int64_t tokens = 0;
    double mean = 0, standard_error = 0;
    double median = 0, p90 = 0, p95 = 0, p99 = 0, p999 = 0, maximum = 0;
    double same_top_token = 0;           // fraction of positions with the same most probable token
    double base_perplexity = 0;          // of the recorded distributions
    double perplexity_ratio = 0;         // the model's over theirs
    double perplexity_ratio_error = 0;   // standard error of that ratio
    double mean_probability_change = 0;  // of the token that follows, model minus recorded
    double rms_probability_change = 0;
  };
  Summary summary() const;

 private:
  std::vector<double> divergences_;
  Mean divergence_, base_nll_, log_ratio_, probability_change_;
  double squared_change_ = 0;
  int64_t same_top_ = 0;
};

}  // namespace infer
