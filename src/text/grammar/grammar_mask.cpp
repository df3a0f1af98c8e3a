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
  const std::string_view text = cache_->vocabulary().text(token);
  last_bytes_ += text.empty() ? '\0' : text.back();
  has_bits_ = false;
}

void GrammarMask::rollback(int64_t n) {
  CHECK_INTERNAL(n >= 0 && static_cast<size_t>(n) < states_.size());
  states_.resize(states_.size() - static_cast<size_t>(n));
  last_bytes_.resize(states_.size() - 1);
  has_bits_ = has_bits_ && n == 0;
}

ForcedText GrammarMask::forced(size_t limit) const {
  const Grammar& grammar = cache_->grammar();
  ForcedText out;
  out.token = grammar.forced_token(state());
  char last = last_bytes_.empty() ? '\0' : last_bytes_.back();
  if (out.token == kNoToken) {
    out.bytes = grammar.likely(state(), last, limit);
    return out;
  }
  const std::string_view text = cache_->vocabulary().text(out.token);
  if (!text.empty()) last = text.back();
  out.bytes = grammar.likely(cache_->after(state(), out.token), last, limit);
  return out;
}

}  // namespace infer::grammar
