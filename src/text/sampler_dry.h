// DRY ("don't repeat yourself"): lowers the logit of each token that would continue a repetition at the end of the
// text, by multiplier * base^(length - allowed_length). The rules are llama.cpp's. Sequence breakers end a repetition.
// DryBreakers is immutable after it is built and may be shared between sequences and threads.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "src/text/sampler_params.h"

namespace infer {

class DryBreakers {
 public:
  DryBreakers() = default;
  // Each breaker is a sequence of tokens; empty ones are ignored.
  explicit DryBreakers(std::span<const std::vector<TokenId>> sequences);

  bool is_single_token(TokenId token) const;
  // The number of tokens after the last breaker in `text`; text.size() if it contains none.
  size_t tokens_since_last(std::span<const TokenId> text) const;
  size_t size() const { return count_; }

 private:
  std::map<TokenId, std::vector<std::vector<TokenId>>> tails_;  // first token -> the tokens after it
  size_t count_ = 0;
};

// The token sequences that contain one of the strings: every token whose text contains it, and every token whose text
// ends with a prefix of it, followed by the tokens of the rest (at most 20).
// `piece` gives a token's text, `encode` the tokens of a text without special tokens.
std::vector<std::vector<TokenId>> dry_breaker_sequences(
    std::span<const std::string> strings, size_t n_vocab, const std::function<std::string(TokenId)>& piece,
    const std::function<std::vector<TokenId>(const std::string&)>& encode);

struct DryPenalty {
  TokenId token;
  float penalty;  // to subtract from the logit
};

// The penalties for the token after `history`, by ascending token; each token appears once.
std::vector<DryPenalty> dry_penalties(const SamplingParams& params, const DryBreakers& breakers,
                                      std::span<const TokenId> history);

}  // namespace infer
