// A grammar as the token mask of a sequence's sampler. Copies share the grammar, its cache, and the state they have in
// common.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/text/grammar/mask_cache.h"
#include "src/text/token_mask.h"

namespace infer::grammar {

class GrammarMask : public TokenMask {
 public:
  explicit GrammarMask(std::shared_ptr<MaskCache> cache);

  AllowedTokens allowed() override;
  bool allows(TokenId token) override { return cache_->allows(states_.back(), token); }
  void accept(TokenId token) override;
  void rollback(int64_t n) override;
  ForcedText forced(size_t limit) const override;
  std::unique_ptr<TokenMask> clone() const override { return std::make_unique<GrammarMask>(*this); }

  const MatchState& state() const { return states_.back(); }
  // Whether generation may end here.
  bool can_end() const { return state().can_end(); }

 private:
  std::shared_ptr<MaskCache> cache_;
  std::vector<MatchState> states_;  // after 0, 1, 2 ... tokens
  std::string last_bytes_;          // of these tokens; 0 for those without text
  std::vector<uint64_t> bits_;      // of the last state, if computed
  bool has_bits_ = false;
};

}  // namespace infer::grammar
