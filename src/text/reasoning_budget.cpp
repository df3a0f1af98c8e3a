#include "src/text/reasoning_budget.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ggml-like/error.h"

namespace infer {
namespace {

// A tag that opens reasoning ("": the prompt has opened it), and the one that closes it.
struct Tags {
  std::string open, close;
  std::vector<TokenId> close_tokens;
};

// Constant; shared by the copies of a mask.
struct Rules {
  std::vector<Tags> tags;
  int64_t budget;
  const Tokenizer& tokenizer;
  std::shared_ptr<const ChatFormat> format;
};

enum class Phase : uint8_t { kStart, kReasoning, kClosing, kAnswer };

// Where an answer is after some token.
struct Place {
  Phase phase = Phase::kStart;
  uint8_t tags = 0;     // index of the open pair
  int64_t n = 0;        // tokens of reasoning, or of the closing tag
  std::string pending;  // text that may be part of a tag
};

class ReasoningBudget : public TokenMask {
 public:
  ReasoningBudget(std::shared_ptr<const Rules> rules, std::unique_ptr<TokenMask> inner)
      : rules_(std::move(rules)), inner_(std::move(inner)), places_(1) {
    if (rules_->tags[0].open.empty()) places_[0] = begin_reasoning(0, "");
  }
  ReasoningBudget(const ReasoningBudget& other)
      : rules_(other.rules_), inner_(other.inner_ ? other.inner_->clone() : nullptr), places_(other.places_) {}
  ReasoningBudget& operator=(const ReasoningBudget&) = delete;

  AllowedTokens allowed() override {
    const TokenId only = only_token();
    if (only == kNoToken) return inner_ ? inner_->allowed() : AllowedTokens();
    bits_.assign((static_cast<size_t>(rules_->tokenizer.n_tokens()) + 63) / 64, 0);
    bits_[static_cast<size_t>(only) / 64] = uint64_t{1} << (only % 64);
    return bits_;
  }

  bool allows(TokenId token) override {
    const TokenId only = only_token();
    if (only != kNoToken) return token == only;
    return !inner_ || inner_->allows(token);
  }

  void accept(TokenId token) override {
    places_.push_back(after(places_.back(), token));
    if (inner_) inner_->accept(token);
  }

  void rollback(int64_t n) override {
    places_.resize(places_.size() - static_cast<size_t>(n));
    if (inner_) inner_->rollback(n);
  }

  std::unique_ptr<TokenMask> clone() const override { return std::make_unique<ReasoningBudget>(*this); }

 private:
  TokenId only_token() const {
    const Place& place = places_.back();
    return place.phase == Phase::kClosing ? rules_->tags[place.tags].close_tokens[static_cast<size_t>(place.n)]
                                          : kNoToken;
  }

  Place begin_reasoning(size_t tags, std::string pending) const {
    const Phase phase = rules_->budget == 0 ? Phase::kClosing : Phase::kReasoning;
    return {phase, static_cast<uint8_t>(tags), 0, std::move(pending)};
  }

  Place after(const Place& before, TokenId token) const {
    const std::string_view piece = token >= 0 && token < rules_->tokenizer.n_tokens()
                                       ? marked_piece(rules_->tokenizer, *rules_->format, token)
                                       : "";
    Place place = before;
    switch (before.phase) {
      case Phase::kStart:
        return after_start(std::string(before.pending).append(piece));
      case Phase::kReasoning: {
        const std::string& close = rules_->tags[before.tags].close;
        place.pending.append(piece);
        if (place.pending.find(close) != std::string::npos) return {Phase::kAnswer, before.tags, 0, ""};
        const size_t keep = std::min(place.pending.size(), close.size() - 1);
        place.pending.erase(0, place.pending.size() - keep);
        if (++place.n >= rules_->budget) return {Phase::kClosing, before.tags, 0, ""};
        return place;
      }
      case Phase::kClosing:
        if (static_cast<size_t>(++place.n) == rules_->tags[before.tags].close_tokens.size()) {
          return {Phase::kAnswer, before.tags, 0, ""};
        }
        return place;
      case Phase::kAnswer:
        return place;
    }
    return place;
  }

  // The place after the first bytes of an answer.
  Place after_start(std::string text) const {
    text.erase(0, std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    bool may_open = false;
    for (size_t i = 0; i < rules_->tags.size(); ++i) {
      const std::string& open = rules_->tags[i].open;
      if (text.starts_with(open)) return begin_reasoning(i, text.substr(open.size()));
      may_open = may_open || open.starts_with(text);
    }
    return {may_open ? Phase::kStart : Phase::kAnswer, 0, 0, std::move(text)};
  }

  const std::shared_ptr<const Rules> rules_;
  const std::unique_ptr<TokenMask> inner_;
  std::vector<Place> places_;  // after 0, 1, 2, ... tokens
  std::vector<uint64_t> bits_;
};

}  // namespace

std::shared_ptr<const TokenMask> limit_reasoning(std::shared_ptr<const TokenMask> inner, const ReasoningStart& start,
                                                 int64_t budget, const Tokenizer& tokenizer,
                                                 std::shared_ptr<const ChatFormat> format) {
  if (budget < 0) return inner;
  auto rules = std::make_shared<Rules>(Rules{{}, budget, tokenizer, std::move(format)});
  const auto add = [&](const std::string& open, const std::string& close) {
    std::vector<TokenId> tokens = tokenizer.encode(close, false, true);
    if (!tokens.empty()) rules->tags.push_back({open, close, std::move(tokens)});
  };
  if (!start.close.empty()) add("", start.close);
  for (const auto& [open, close] : start.may) add(open, close);
  if (rules->tags.empty()) return inner;
  return std::make_shared<ReasoningBudget>(std::move(rules), inner ? inner->clone() : nullptr);
}

}  // namespace infer
