// Ends reasoning after a number of tokens.
#include "src/text/reasoning_budget.h"

#include <doctest/doctest.h>

using namespace infer;

namespace {

enum : TokenId { kUnk, kLetterA, kLetterB, kOpen, kClose };

const Tokenizer& two_letters() {
  static const Tokenizer made = [] {
    Vocabulary v;
    v.model = TokenizerModel::kSentencePiece;
    v.tokens = {{"<unk>", 0, TokenType::kUnknown},
                {"a", 0},
                {"b", 0},
                {"<think>", 0, TokenType::kUserDefined},
                {"</think>", 0, TokenType::kUserDefined}};
    v.unk = kUnk;
    v.add_space_prefix = false;
    return Tokenizer(std::move(v));
  }();
  return made;
}

// Allows one token, whatever came before.
class Only final : public TokenMask {
 public:
  explicit Only(TokenId token) : token_(token) {}
  AllowedTokens allowed() override {
    bits_ = uint64_t{1} << token_;
    return {&bits_, 1};
  }
  void accept(TokenId) override { ++n_; }
  void rollback(int64_t n) override { n_ -= n; }
  std::unique_ptr<TokenMask> clone() const override { return std::make_unique<Only>(*this); }

 private:
  TokenId token_;
  int64_t n_ = 0;
  uint64_t bits_ = 0;
};

std::unique_ptr<TokenMask> limited(const ReasoningStart& start, int64_t budget,
                                   std::shared_ptr<const TokenMask> inner = nullptr) {
  const auto mask = limit_reasoning(inner, start, budget, two_letters(), std::make_shared<const ChatFormat>());
  return mask ? mask->clone() : nullptr;
}

const ReasoningStart kOpened{"</think>", {}}, kMayOpen{"", {{"<think>", "</think>"}}};

bool only_close(TokenMask& mask) {
  const AllowedTokens all = mask.allowed();
  const bool listed = all.size() == 1 && all[0] == uint64_t{1} << kClose;
  CHECK(listed == (mask.allows(kClose) && !mask.allows(kLetterA)));
  return listed;
}

}  // namespace

TEST_CASE("reasoning budget: without a limit or without reasoning the mask stays as it is") {
  CHECK(!limited(kOpened, -1));
  CHECK(!limited({}, 0));
  const auto inner = std::make_shared<const Only>(kLetterB);
  CHECK(limit_reasoning(inner, kOpened, -1, two_letters(), std::make_shared<const ChatFormat>()) == inner);
}

TEST_CASE("reasoning budget: the closing tag is the only token once the budget is spent") {
  const auto mask = limited(kOpened, 2);
  REQUIRE(mask);
  for (int i = 0; i < 2; ++i) {
    CHECK(mask->allowed().empty());
    mask->accept(kLetterA);
  }
  CHECK(only_close(*mask));
  mask->accept(kClose);
  for (int i = 0; i < 5; ++i) {
    CHECK(mask->allowed().empty());  // the answer has no limit, even if it opens the tag again
    mask->accept(i == 2 ? kOpen : kLetterA);
  }
}

TEST_CASE("reasoning budget: 0 closes at once") {
  CHECK(only_close(*limited(kOpened, 0)));
  const auto mask = limited(kMayOpen, 0);
  CHECK(mask->allowed().empty());
  mask->accept(kOpen);
  CHECK(only_close(*mask));
}

TEST_CASE("reasoning budget: reasoning that ends early, or never begins, is not limited") {
  const auto early = limited(kOpened, 2);
  early->accept(kClose);
  const auto none = limited(kMayOpen, 2);
  for (int i = 0; i < 5; ++i) {
    for (TokenMask* mask : {early.get(), none.get()}) {
      mask->accept(kLetterA);
      CHECK(mask->allowed().empty());
    }
  }
}

TEST_CASE("reasoning budget: rolled back tokens are not counted, and copies are independent") {
  const auto mask = limited(kMayOpen, 1);
  mask->accept(kOpen);
  mask->accept(kLetterA);
  const auto copy = mask->clone();
  mask->rollback(1);
  CHECK(mask->allowed().empty());
  CHECK(only_close(*copy));
  mask->rollback(1);
  mask->accept(kLetterB);  // the answer begins without reasoning
  mask->accept(kLetterB);
  CHECK(mask->allowed().empty());
}

TEST_CASE("reasoning budget: outside the closing tag the other mask applies") {
  const auto mask = limited(kOpened, 1, std::make_shared<const Only>(kLetterB));
  CHECK(mask->allows(kLetterB));
  CHECK(!mask->allows(kLetterA));
  mask->accept(kLetterB);
  CHECK(only_close(*mask));
  mask->accept(kClose);
  CHECK(mask->allowed()[0] == uint64_t{1} << kLetterB);
}
