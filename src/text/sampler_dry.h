// DRY ("don't repeat yourself"): lowers the logits of tokens that would continue a repetition of what the text ends
// with, by multiplier * base^(length - allowed_length); rules as in llama.cpp. Sequence breakers end a repetition.
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
  // How many tokens at the end of `text` lie behind the last breaker in it; text.size() when there is none.
  size_t tokens_since_last(std::span<const TokenId> text) const;
  size_t size() const { return count_; }

 private:
  std::map<TokenId, std::vector<std::vector<TokenId>>> tails_;  // first token -> what follows it
  size_t count_ = 0;
};

// The token sequences that spell one of the strings: every token whose text contains it, and every token whose text
// ends with a beginning of it, followed by the tokens of the rest (at most 20).
// `piece` gives the text of a token, `encode` the tokens of a text without special tokens.
std::vector<std::vector<TokenId>> dry_breaker_sequences(
    std::span<const std::string> strings, size_t n_vocab, const std::function<std::string(TokenId)>& piece,
    const std::function<std::vector<TokenId>(const std::string&)>& encode);

struct DryPenalty {
  TokenId token;
  float penalty;  // to subtract from the logit
};

// The penalties for the token after `history`, in ascending order of tokens; each token once.
std::vector<DryPenalty> dry_penalties(const SamplingParams& params, const DryBreakers& breakers,
                                      std::span<const TokenId> history);

}  // namespace infer
