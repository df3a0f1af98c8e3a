#include "src/text/logprobs.h"

#include <algorithm>
#include <limits>

#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "src/text/ieee_math.h"
#include "src/text/sampler_stages.h"

namespace infer {

double log_sum_exp(std::span<const float> logits) {
  const TokenId best = find_best(logits);
  if (best == kNoToken) {
    throw Error(ErrorCode::kInvalidArgument,
                expected_found("logprobs", "a logit above -inf", concat("none in ", logits.size())));
  }
  const double shift = logits[best];
  constexpr size_t kLanes = 16, kChunk = 256;
  double sums[kLanes] = {};
  double terms[kChunk];
  for (size_t begin = 0; begin < logits.size(); begin += kChunk) {
    const size_t n = std::min(kChunk, logits.size() - begin);
    for (size_t i = 0; i < n; ++i) terms[i] = ieee_exp_nonpositive(logits[begin + i] - shift);
    for (size_t i = 0; i < n; ++i) sums[i % kLanes] += terms[i];
  }
  for (size_t width = kLanes / 2; width > 0; width /= 2) {
    for (size_t lane = 0; lane < width; ++lane) sums[lane] += sums[lane + width];
  }
  return shift + ieee_log(sums[0]);
}

namespace {

void check_token(std::span<const float> logits, TokenId token) {
  if (token >= 0 && static_cast<size_t>(token) < logits.size()) return;
  throw Error(ErrorCode::kInvalidArgument,
              expected_found("logprobs", concat("a token id below ", logits.size()), token));
}

std::vector<TokenLogprob> top_below(std::span<const float> logits, double shift, size_t n) {
  std::vector<TokenLogprob> result;
  if (n == 0) return result;
  Candidates c;
  select_top(logits, -std::numeric_limits<float>::infinity(), static_cast<int64_t>(std::min(n, logits.size())), c);
  if (!c.best_first) std::sort(c.items.begin(), c.items.end(), better);
  result.reserve(c.items.size());
  for (const Candidate& item : c.items) result.push_back({item.id, item.logit - shift});
  return result;
}

}  // namespace

double logprob(std::span<const float> logits, TokenId token) {
  check_token(logits, token);
  return logits[token] - log_sum_exp(logits);
}

TokenLogprobs token_logprobs(std::span<const float> logits, TokenId token, size_t n) {
  check_token(logits, token);
  const double shift = log_sum_exp(logits);
  return {logits[token] - shift, top_below(logits, shift, n)};
}

std::vector<TokenLogprob> top_logprobs(std::span<const float> logits, size_t n) {
  return top_below(logits, log_sum_exp(logits), n);
}

}  // namespace infer
