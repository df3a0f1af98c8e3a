// Sampling from only the best logits of a row: the same token as from the whole row, or the sampler says that it needs
// the row.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "ggml-like/error.h"
#include "src/text/sampler.h"

using namespace infer;

namespace {

constexpr size_t kVocab = 300;

// Forbids these tokens.
class Without final : public TokenMask {
 public:
  explicit Without(const std::vector<TokenId>& tokens) {
    for (const TokenId token : tokens) bits_[static_cast<size_t>(token) / 64] &= ~(uint64_t{1} << (token % 64));
  }
  AllowedTokens allowed() override { return bits_; }
  void accept(TokenId) override {}
  void rollback(int64_t) override {}
  std::unique_ptr<TokenMask> clone() const override { return std::make_unique<Without>(*this); }

 private:
  std::vector<uint64_t> bits_ = std::vector<uint64_t>((kVocab + 63) / 64, ~uint64_t{0});
};

struct Selected {
  std::vector<int32_t> ids;
  std::vector<float> values;
  BestLogits best() const { return {ids, values, 0}; }
};

Selected select(const std::vector<float>& logits, size_t k) {
  Selected s;
  s.ids.resize(logits.size());
  std::iota(s.ids.begin(), s.ids.end(), 0);
  std::stable_sort(s.ids.begin(), s.ids.end(), [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  s.ids.resize(k);
  for (const int32_t id : s.ids) s.values.push_back(logits[static_cast<size_t>(id)]);
  return s;
}

SamplingParams with(float temperature, int32_t top_k) {
  SamplingParams p;
  p.seed = 9, p.temperature = temperature, p.top_k = top_k;
  return p;
}

int64_t n_deciding(const SamplingParams& p) { return Sampler(p, kVocab).n_deciding(); }

}  // namespace

TEST_CASE("the best logits alone give the same token as the whole row") {
  std::mt19937 random(4);
  std::normal_distribution<float> normal(0, 2);
  SamplingParams typical = with(1, 30), dynamic = with(0.5f, 64), wide = with(5, 40);
  typical.typical_p = 0.6f, typical.xtc_probability = 0.5f;
  dynamic.dynatemp_range = 0.5f, dynamic.top_p = 1, dynamic.min_p = 0;
  wide.top_p = 0.99f, wide.min_p = 0;
  for (const SamplingParams& p : {with(0, 40), with(0.8f, 40), with(0.8f, 1), with(9, 299), typical, dynamic, wide}) {
    Sampler sampler(p, kVocab);
    SamplerScratch scratch;
    const int64_t n = sampler.n_deciding();
    REQUIRE(n == (p.greedy() ? 1 : p.top_k));
    for (int trial = 0; trial < 200; ++trial) {
      std::vector<float> logits(kVocab);
      for (float& x : logits) {
        x = normal(random);
        if (trial % 3 == 1) x = std::round(x);                                          // ties, also at the n-th place
        if (trial % 3 == 2 && static_cast<int>(random() % 200) < trial) x = -INFINITY;  // fewer than n are left
      }
      logits[static_cast<size_t>(trial)] = 1;
      const std::vector<TokenId> history(static_cast<size_t>(trial), 0);
      const TokenId whole = sampler.sample(logits, history, scratch);
      // More than are needed change nothing.
      for (const size_t k : {static_cast<size_t>(n), std::min(static_cast<size_t>(n) + 7, kVocab)}) {
        CHECK(sampler.sample(select(logits, k).best(), trial, scratch) == whole);
      }
    }
  }
}

TEST_CASE("with a mask the best logits give the token of the whole row, or none if too few are allowed") {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 2);
  constexpr size_t kSelected = 20;
  for (const SamplingParams& p : {with(0, 40), with(0.8f, 1), with(2, 10), with(2, 20)}) {
    int n_undecided = 0;
    for (int trial = 0; trial < 200; ++trial) {
      std::vector<float> logits(kVocab);
      for (size_t i = 0; i < kVocab; ++i) logits[i] = i < static_cast<size_t>(trial) ? -INFINITY : normal(random);
      const Selected best = select(logits, kSelected);
      std::vector<TokenId> forbidden;  // of the best ones, the first n in every second trial
      const size_t n = random() % (kSelected + 1);
      for (size_t i = 0; i < n; ++i) forbidden.push_back(best.ids[trial % 2 == 0 ? i : random() % kSelected]);
      Sampler sampler(p, kVocab, nullptr, std::make_unique<Without>(forbidden));
      SamplerScratch scratch;
      const std::vector<TokenId> history(static_cast<size_t>(trial), 0);
      size_t n_allowed = 0;
      for (const TokenId id : best.ids) {
        n_allowed += std::find(forbidden.begin(), forbidden.end(), id) == forbidden.end() ? 1 : 0;
      }
      const std::optional<TokenId> found = sampler.sample(best.best(), trial, scratch);
      CHECK(found.has_value() == (n_allowed >= static_cast<size_t>(sampler.n_deciding())));
      if (found) CHECK(*found == sampler.sample(logits, history, scratch));
      n_undecided += found ? 0 : 1;
    }
    CHECK(n_undecided > 0);
    CHECK(n_undecided < 200);
  }
}

TEST_CASE("a token that the row has beyond the vocabulary is not sampled") {
  SamplerScratch scratch;
  Sampler sampler(with(0, 4), kVocab);
  const Selected best{{kVocab + 2, 7}, {3, 2}};
  CHECK(sampler.sample(best.best(), 0, scratch) == 7);
  const Selected only{{kVocab + 2}, {3}};
  CHECK(sampler.sample(only.best(), 0, scratch) == std::nullopt);
}

TEST_CASE("a sampler says when other logits or the history matter") {
  CHECK(n_deciding(with(1, 0)) == 0);
  CHECK(n_deciding(with(1, -1)) == 0);
  CHECK(n_deciding(with(1, kVocab)) == 0);
  for (const float temperature : {0.0f, 1.0f}) {
    const SamplingParams plain = with(temperature, 10);
    CHECK(n_deciding(plain) == (temperature > 0 ? 10 : 1));
    SamplingParams p = plain;
    p.repeat_penalty = 1.1f;
    CHECK(n_deciding(p) == 0);
    p.repeat_last_n = 0;
    CHECK(n_deciding(p) == n_deciding(plain));
    p = plain, p.frequency_penalty = 0.1f;
    CHECK(n_deciding(p) == 0);
    p = plain, p.presence_penalty = 0.1f;
    CHECK(n_deciding(p) == 0);
    p = plain, p.logit_bias = {{3, 1.0f}};
    CHECK(n_deciding(p) == 0);
    p = plain, p.dry_multiplier = 1;
    CHECK(n_deciding(p) == 0);
    p.dry_penalty_last_n = 0;
    CHECK(n_deciding(p) == n_deciding(plain));
    p = plain, p.mirostat = 2;
    CHECK(n_deciding(p) == (temperature > 0 ? 0 : 1));
    p = plain, p.top_n_sigma = 1;
    CHECK(n_deciding(p) == (temperature > 0 ? 0 : 1));
    const Sampler masked(plain, kVocab, nullptr, std::make_unique<Without>(std::vector<TokenId>{}));
    CHECK(masked.n_deciding() == n_deciding(plain));
  }
}

TEST_CASE("best logits that are all -infinity leave no token") {
  SamplerScratch scratch;
  for (const float temperature : {0.0f, 1.0f}) {
    Sampler sampler(with(temperature, 4), kVocab);
    const Selected none = select(std::vector<float>(kVocab, -INFINITY), 4);
    CHECK_THROWS_AS(sampler.sample(none.best(), 0, scratch), Error);
  }
}
