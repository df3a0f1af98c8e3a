#include "src/text/grammar/grammar_mask.h"

#include "ggml-like/error.h"

namespace infer::grammar {

GrammarMask::GrammarMask(std::shared_ptr<MaskCache> cache) : cache_(std::move(cache)) {
  states_.push_back(cache_->grammar().start());
}

AllowedTokens GrammarMask::allowed() {
  if (!has_bits_) cache_->allowed(states_.back(), bits_);
  has_bits_ = true;
  return bits_;
}

void GrammarMask::accept(TokenId token) {
  states_.push_back(cache_->after(states_.back(), token));
  has_bits_ = false;
}

void GrammarMask::rollback(int64_t n) {
  CHECK_INTERNAL(n >= 0 && static_cast<size_t>(n) < states_.size());
  states_.resize(states_.size() - static_cast<size_t>(n));
  has_bits_ = has_bits_ && n == 0;
}

}  // namespace infer::grammar
