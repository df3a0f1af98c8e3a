// Token masks: the masked text is the same with drafts, as a choice, and after preemption.
#include "src/text/token_mask.h"

#include <doctest/doctest.h>

#include "tests/unit/engine/engine_world.h"

namespace infer {
namespace {

using namespace infer::test;

constexpr TokenId kLast = 77;

// Allows n even tokens, then only kLast.
class EvenTokens final : public TokenMask {
 public:
  explicit EvenTokens(size_t n) : n_(n) {}
  AllowedTokens allowed() override {
    if (accepted_.size() < n_) {
      bits_.assign(8, 0x5555555555555555);
    } else {
      bits_.assign(8, 0);
      bits_[kLast / 64] = uint64_t{1} << (kLast % 64);
    }
    return bits_;
  }
  void accept(TokenId token) override {
    REQUIRE((allowed()[static_cast<size_t>(token) / 64] >> (token % 64) & 1) == 1);
    accepted_.push_back(token);
  }
  void rollback(int64_t n) override { accepted_.resize(accepted_.size() - static_cast<size_t>(n)); }
  std::unique_ptr<TokenMask> clone() const override { return std::make_unique<EvenTokens>(*this); }

 private:
  size_t n_;
  std::vector<TokenId> accepted_;
  std::vector<uint64_t> bits_;
};

Request masked_request(int prompt_length, int n_new) {
  Request request = make_request(1, prompt_length, n_new);
  request.sampling.temperature = 2;
  request.mask = std::make_shared<EvenTokens>(static_cast<size_t>(n_new) - 4);
  return request;
}

void check_masked(const std::vector<TokenId>& tokens, size_t n_new) {
  REQUIRE(tokens.size() == n_new);
  for (size_t i = 0; i < n_new; ++i) CHECK((i < n_new - 4 ? tokens[i] % 2 == 0 : tokens[i] == kLast));
}

TEST_CASE("drafts do not change a masked text, and those that the mask forbids are not verified") {
  const Request request = masked_request(40, 24);
  const std::vector<TokenId> plain = run_alone("Q4_K_M", request, small_options()).tokens;
  check_masked(plain, 24);
  for (const TokenId wrong : {-1, 6, 7}) {  // correct drafts, or one wrong draft that is allowed or forbidden
    CAPTURE(wrong);
    EngineOptions options = small_options();
    options.draft_rows = 4;
    Engine engine(open_model("Q4_K_M"), options);
    std::vector<TokenId> tokens;
    REQUIRE(engine.submit(request));
    for (int steps = 0; !engine.idle(); ++steps) {
      REQUIRE(steps < 24);
      const size_t n = tokens.size();
      if (n > 0 && n + 5 < plain.size()) {
        std::vector<TokenId> drafts(plain.begin() + n, plain.begin() + n + 4);
        if (wrong >= 0) drafts[2] = drafts[2] == wrong ? wrong + 2 : wrong;
        engine.propose(1, drafts);
      }
      for (const Progress& p : engine.step()) tokens.insert(tokens.end(), p.tokens.begin(), p.tokens.end());
    }
    CHECK(tokens == plain);
    const SchedulerStats& stats = engine.scheduler().stats();
    CHECK(stats.drafts.accepted > 0);
    CHECK((stats.drafts.proposed > stats.drafts.accepted) == (wrong == 6));
  }
}

TEST_CASE("each choice has its own mask, even if choices are preempted") {
  Request request = masked_request(75, 40);
  request.sampling.seed = 5;
  request.choices = {11, 12, 13};
  for (const int64_t cache_tokens : {0, 192}) {
    CAPTURE(cache_tokens);
    EngineOptions options = small_options();
    options.max_sequences = 4;
    options.cache_tokens = cache_tokens;
    Engine engine(open_model("Q4_K_M"), options);
    const auto answers = run_all(engine, {{0, request}});
    for (uint64_t i = 0; i < 4; ++i) {
      Request alone = request;
      alone.choices.clear();
      alone.sampling.seed = 5 + i;
      const std::vector<TokenId>& tokens = answers.at(i == 0 ? 1 : 10 + i).tokens;
      check_masked(tokens, 40);
      CHECK(tokens == run_alone("Q4_K_M", alone, small_options()).tokens);
    }
    CHECK((engine.scheduler().stats().preemptions > 0) == (cache_tokens == 192));
  }
}

}  // namespace
}  // namespace infer
