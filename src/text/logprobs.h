// Log-probabilities (natural logarithm) of tokens: the softmax of the logits over the whole vocabulary, in double. Pure
// functions. All throw Error(kInvalidArgument) on NaN or +inf logits, and when every logit is -inf.
#pragma once

#include <span>
#include <vector>

#include "src/text/vocabulary.h"

namespace infer {

struct TokenLogprob {
  TokenId token;
  double logprob;  // -inf for a logit of -inf
};

// log(sum(exp(logit))). Computed as 16 partial sums (index mod 16), added pairwise.
double log_sum_exp(std::span<const float> logits);

double logprob(std::span<const float> logits, TokenId token);

// The log-probability of a token and the n most probable tokens, as below, with one pass for the sum.
struct TokenLogprobs {
  double logprob;
  std::vector<TokenLogprob> top;
};
TokenLogprobs token_logprobs(std::span<const float> logits, TokenId token, size_t n);

// The n most probable tokens, best first, ties to the lower id; fewer if the vocabulary is smaller or the rest is -inf.
std::vector<TokenLogprob> top_logprobs(std::span<const float> logits, size_t n);

}  // namespace infer
