// The whole chain: order of stages, penalties, distribution, determinism, extremes, and messages of validation.
#include "src/text/sampler.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <random>

#include "ggml-like/error.h"

using namespace infer;

namespace {

// All stages off: samples from softmax(logits).
SamplingParams plain(uint64_t seed = 1) {
  SamplingParams p;
  p.seed = seed, p.temperature = 1, p.top_k = 0, p.top_p = 1, p.min_p = 0;
  return p;
}

SamplingParams greedy() {
  SamplingParams p;
  p.seed = 1, p.temperature = 0;
  return p;
}

// Samples at position `position`, with a history of zeros.
TokenId sample_at(Sampler& sampler, const std::vector<float>& logits, size_t position) {
  SamplerScratch scratch;
  return sampler.sample(logits, std::vector<TokenId>(position, 0), scratch);
}

// Allows the tokens of one list per step; after the last list all tokens.
class ListedTokens final : public TokenMask {
 public:
  ListedTokens(size_t n_vocab, std::vector<std::vector<TokenId>> lists)
      : bits_((n_vocab + 63) / 64), lists_(std::move(lists)) {}

  AllowedTokens allowed() override {
    if (n_accepted_ >= lists_.size()) return {};
    std::fill(bits_.begin(), bits_.end(), 0);
    for (const TokenId t : lists_[n_accepted_]) bits_[t / 64] |= uint64_t{1} << (t % 64);
    return bits_;
  }
  void accept(TokenId) override { ++n_accepted_; }
  void rollback(int64_t n) override { n_accepted_ -= static_cast<size_t>(n); }
  std::unique_ptr<TokenMask> clone() const override { return std::make_unique<ListedTokens>(*this); }

 private:
  std::vector<uint64_t> bits_;
  std::vector<std::vector<TokenId>> lists_;
  size_t n_accepted_ = 0;
};

TokenId sample_after(const SamplingParams& p, const std::vector<float>& logits, const std::vector<TokenId>& history) {
  SamplerScratch scratch;
  Sampler sampler(p, logits.size());
  const TokenId token = sampler.sample(logits, history, scratch);
  CHECK(std::all_of(scratch.counts.begin(), scratch.counts.end(), [](int32_t c) { return c == 0; }));
  return token;
}

// How often each token is sampled at `n` positions.
std::vector<int> histogram(const SamplingParams& p, const std::vector<float>& logits, int n) {
  Sampler sampler(p, logits.size());
  std::vector<int> counts(logits.size());
  std::vector<TokenId> history;
  SamplerScratch scratch;
  for (int i = 0; i < n; ++i) {
    ++counts[sampler.sample(logits, history, scratch)];
    history.push_back(0);
  }
  return counts;
}

double chi_square(const std::vector<int>& counts, const std::vector<double>& p, int n) {
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) sum += (counts[i] - n * p[i]) * (counts[i] - n * p[i]) / (n * p[i]);
  return sum;
}

std::string message_of(const SamplingParams& p) {
  try {
    p.validate();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("samples follow softmax(logits / temperature)") {
  const std::vector<float> logits = {1.0f, 0.0f, 2.0f, -1.0f, 0.5f, 2.0f, -INFINITY, 1.5f};
  for (const float temperature : {0.7f, 1.0f, 2.5f}) {
    for (const uint64_t seed : {1, 99, 123456789}) {
      SamplingParams p = plain(seed);
      p.temperature = temperature;
      const int n = 100000;
      std::vector<int> counts = histogram(p, logits, n);
      CHECK(counts[6] == 0);
      counts.erase(counts.begin() + 6);
      std::vector<double> expected;
      double sum = 0;
      for (float x : logits) sum += std::exp(x / temperature);
      for (float x : logits) {
        if (x != -INFINITY) expected.push_back(std::exp(x / temperature) / sum);
      }
      CHECK(chi_square(counts, expected, n) < 22.5);  // 6 degrees of freedom, 0.999 quantile
    }
  }
}

TEST_CASE("samples at neighbouring positions are independent") {
  const std::vector<float> logits(4, 0.0f);
  Sampler sampler(plain(5), 4);
  std::vector<int> pairs(16);
  int last = sample_at(sampler, logits, 0);
  const int n = 4000;
  for (int i = 1; i <= n; ++i) {
    const int next = sample_at(sampler, logits, i);
    ++pairs[last * 4 + next];
    last = next;
  }
  CHECK(chi_square(pairs, std::vector<double>(16, 1.0 / 16), n) < 37.7);  // 15 degrees of freedom, 0.999 quantile
}

TEST_CASE("a token depends on seed, position, logits and history only") {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 3);
  std::vector<std::vector<float>> logits(40, std::vector<float>(500));
  for (auto& row : logits) {
    for (float& x : row) x = normal(random);
  }
  SamplingParams p;
  p.seed = 77, p.repeat_penalty = 1.3f, p.dry_multiplier = 0.8f, p.xtc_probability = 0.5f, p.typical_p = 0.9f;
  SamplerScratch scratch;
  std::vector<TokenId> text;
  Sampler sampler(p, 500);
  for (const auto& row : logits) {
    text.push_back(sampler.sample(row, text, scratch));
    sampler.accept(text.back());
  }
  // Again in reverse order, with a new sampler for each position, sharing scratch with another sampler.
  Sampler other(plain(3), 500);
  for (size_t i = logits.size(); i-- > 0;) {
    other.sample(logits[i], text, scratch);
    Sampler fresh(p, 500);
    CHECK(fresh.sample(logits[i], std::span(text).first(i), scratch) == text[i]);
    CHECK(fresh.sample(logits[i], std::span(text).first(i), scratch) == text[i]);
  }
  p.seed = 78;
  Sampler different(p, 500);
  int changed = 0;
  for (size_t i = 0; i < logits.size(); ++i)
    changed += different.sample(logits[i], std::span(text).first(i), scratch) != text[i];
  CHECK(changed > 5);
}

TEST_CASE("choices of one prompt have the seeds after the first one's") {
  const Sampler sampler(plain(42), 1000);
  CHECK(sampler.for_choice(0).seed() == 42);
  CHECK(sampler.for_choice(1).seed() == 43);
  CHECK(sampler.for_choice(2).seed() == 44);
  CHECK(Sampler(plain(UINT64_MAX), 1000).for_choice(1).seed() == 0);
}

TEST_CASE("a missing seed is chosen at random") {
  SamplingParams p;
  CHECK(Sampler(p, 10).seed() != Sampler(p, 10).seed());
}

TEST_CASE("temperature 0 takes the best token, the lowest id among equals") {
  CHECK(sample_after(greedy(), {1, 5, 2, 5}, {}) == 1);
  SamplingParams p = greedy();
  p.temperature = -1, p.xtc_probability = 1, p.typical_p = 0.1f;  // without effect
  CHECK(sample_after(p, {1, 5, 2, 5}, {}) == 1);
  p = plain(), p.temperature = 1e-30f;
  CHECK(sample_after(p, {1, 5, 2, 4.999f}, {}) == 1);
  p.temperature = 3e38f;  // almost uniform, without overflow
  CHECK(sample_after(p, {1, -3e38f, 2, 3e38f}, {}) >= 0);
}

TEST_CASE("truncations keep the right tokens") {
  const std::vector<float> logits = {0, 1, 2, 3, 4, 5, 6, 7};
  SamplingParams p = plain();
  p.top_k = 3;
  std::vector<int> counts = histogram(p, logits, 3000);
  CHECK(counts[4] == 0);
  CHECK(counts[5] > 0);
  p = plain(), p.top_k = 1;
  CHECK(histogram(p, logits, 50)[7] == 50);
  p = plain(), p.top_p = 0;
  CHECK(histogram(p, logits, 50)[7] == 50);
  p = plain(), p.min_p = 1;
  CHECK(histogram(p, logits, 50)[7] == 50);
  p = plain(), p.top_n_sigma = 1.0f;  // sigma is 2.29
  counts = histogram(p, logits, 3000);
  CHECK(counts[4] == 0);
  CHECK(counts[5] > 0);
}

TEST_CASE("XTC removes the top choices with the requested probability") {
  SamplingParams p = plain();
  const std::vector<float> logits = {2, 2, 2, -10};
  p.xtc_probability = 1, p.xtc_threshold = 0.2f;
  std::vector<int> counts = histogram(p, logits, 1000);
  CHECK(counts[0] == 0);
  CHECK(counts[1] == 0);
  CHECK(counts[2] > 990);
  p.xtc_probability = 0.5f;
  counts = histogram(p, logits, 6000);  // token 2: 1/2 + 1/2 * 1/3
  CHECK(std::abs(counts[2] - 4000) < 150);
}

// Greedy sampling looks at the mask last; that makes no difference, also among equal logits.
TEST_CASE("a token mask is the same as logits of minus infinity") {
  std::mt19937 random(5);
  SamplerScratch scratch;
  for (int i = 0; i < 300; ++i) {
    const size_t n = 1 + random() % 200;
    std::vector<float> logits(n), masked(n, -INFINITY);
    std::vector<TokenId> list;
    for (size_t t = 0; t < n; ++t) {
      logits[t] = static_cast<float>(random() % 8);
      if (random() % (1 + static_cast<unsigned>(i) % 9) != 0) continue;
      list.push_back(static_cast<TokenId>(t));
      masked[t] = logits[t];
    }
    if (list.empty()) continue;
    SamplingParams p = greedy();
    p.presence_penalty = static_cast<float>(i % 3);
    if (i % 2) p.temperature = 1, p.seed = static_cast<uint64_t>(i);
    const std::vector<TokenId> history = {static_cast<TokenId>(random() % n)};
    Sampler sampler(p, n, nullptr, std::make_unique<ListedTokens>(n, std::vector<std::vector<TokenId>>{list}));
    CHECK(sampler.sample(logits, history, scratch) == Sampler(p, n).sample(masked, history, scratch));
  }
}

TEST_CASE("token mask, logit bias and penalties come first") {
  SamplerScratch scratch;
  Sampler sampler(greedy(), 70, nullptr,
                  std::make_unique<ListedTokens>(70, std::vector<std::vector<TokenId>>{{5, 65}, {}, {3}}));
  std::vector<float> logits(70, 0.0f);
  logits[3] = 9, logits[65] = 5;
  CHECK(sampler.sample(logits, {}, scratch) == 65);
  CHECK(Sampler(greedy(), 70).sample(logits, {}, scratch) == 3);  // nothing is left of the mask
  Sampler copy = sampler;
  CHECK(sampler.count_allowed(std::vector<TokenId>{5, 3, 3}) == 1);
  CHECK(sampler.count_allowed(std::vector<TokenId>{3}) == 0);
  sampler.accept(65);
  CHECK_THROWS_WITH_AS(sampler.sample(logits, {}, scratch),
                       "[sampling] expected a token that can follow, found every token forbidden", Error);
  sampler.accept(65);
  CHECK(sampler.count_allowed(std::vector<TokenId>{3, 69, 1}) == 3);
  CHECK(sampler.sample(logits, {}, scratch) == 3);
  CHECK(copy.sample(logits, {}, scratch) == 65);  // each has a mask of its own

  SamplingParams p = greedy();
  p.logit_bias = {{3, -INFINITY}, {7, 6.0f}};
  CHECK(sample_after(p, logits, {}) == 7);
}

TEST_CASE("penalties follow llama.cpp's formula") {
  std::mt19937 random(4);
  std::normal_distribution<float> normal(0, 3);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> logits(20);
    for (float& x : logits) x = normal(random);
    std::vector<TokenId> history(random() % 30);
    for (TokenId& t : history) t = static_cast<TokenId>(random() % 20);
    SamplingParams p = greedy();
    p.repeat_last_n = static_cast<int32_t>(random() % 12) - 1;
    p.repeat_penalty = 1.4f, p.frequency_penalty = 0.3f, p.presence_penalty = -0.2f;
    std::map<TokenId, int> counts;
    const size_t window = p.repeat_last_n < 0 ? history.size() : std::min<size_t>(history.size(), p.repeat_last_n);
    for (size_t i = history.size() - window; i < history.size(); ++i) ++counts[history[i]];
    std::vector<float> expected = logits;
    for (const auto& [token, count] : counts) {
      float& x = expected[token];
      x = x > 0 ? x / 1.4f : x * 1.4f;
      x -= static_cast<float>(count) * 0.3f - 0.2f;
    }
    CHECK(sample_after(p, logits, history) == std::max_element(expected.begin(), expected.end()) - expected.begin());
  }
  SamplingParams p = greedy();
  p.repeat_penalty = 2;
  CHECK(sample_after(p, {1, 5}, {-1, 7, 1000000}) == 1);  // tokens outside the vocabulary are ignored
}

TEST_CASE("extremes") {
  CHECK(sample_after(plain(), {-5}, {}) == 0);
  CHECK(sample_after(SamplingParams{}, {-INFINITY, -INFINITY, -2}, {}) == 2);
  const std::vector<int> counts = histogram(SamplingParams{}, {0, -INFINITY, 0, 0}, 300);
  CHECK(counts[1] == 0);
  CHECK(counts[3] > 50);
  const std::vector<float> even(1000, 0.25f);
  CHECK(sample_after(SamplingParams{}, even, {}) < 40);  // top_k 40 keeps the lowest ids of equals
  CHECK(sample_after(plain(), even, {}) < 1000);
  CHECK_THROWS_AS(sample_after(plain(), {-INFINITY, -INFINITY}, {}), Error);
  CHECK_THROWS_AS(sample_after(plain(), {NAN, 1}, {}), Error);
  CHECK_THROWS_AS(sample_after(plain(), {INFINITY, 1}, {}), Error);
  SamplerScratch scratch;
  Sampler sampler(plain(), 4);
  CHECK_THROWS_AS(sampler.sample(std::vector<float>(3), {}, scratch), Error);
  Sampler narrow_mask(greedy(), 65, nullptr,
                      std::make_unique<ListedTokens>(64, std::vector<std::vector<TokenId>>{{5}}));
  CHECK_THROWS_AS(narrow_mask.sample(std::vector<float>(65), {}, scratch), Error);
}

TEST_CASE("mirostat holds the mean surprise at tau") {
  std::mt19937 random(9);
  std::vector<float> logits(2000);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = -1.1f * std::log(static_cast<float>(i + 1));  // Zipf
  for (const float tau : {2.0f, 4.0f}) {
    SamplingParams p = plain(3);
    p.mirostat = 2, p.mirostat_tau = tau;
    Sampler sampler(p, logits.size());
    SamplerScratch scratch;
    std::vector<TokenId> text;
    double log_z = 0, surprise = 0;
    int counted = 0;
    for (int i = 0; i < 3000; ++i) {
      const double before = sampler.mirostat_mu();
      const TokenId token = sampler.sample(logits, text, scratch);
      CHECK(sampler.mirostat_mu() == before);
      // The surprise among the tokens that mu admits.
      double z = 0;
      log_z = 0;
      for (float x : logits) log_z += std::exp(x);
      for (float x : logits) z += -std::log2(std::exp(x) / log_z) <= before ? std::exp(x) : 0;
      if (z == 0) z = std::exp(logits[0]);
      sampler.accept(token);
      const double bits = -std::log2(std::exp(logits[token]) / z);
      CHECK(sampler.mirostat_mu() == doctest::Approx(before - 0.1 * (bits - tau)));
      if (i >= 500) surprise += bits, ++counted;
      text.push_back(token);
    }
    CHECK(surprise / counted == doctest::Approx(tau).epsilon(0.05));
  }
  // A copy has its own mu; a token that was not sampled does not change it.
  SamplingParams p = plain(3);
  p.mirostat = 2;
  Sampler sampler(p, logits.size());
  CHECK(sampler.mirostat_mu() == 10);
  Sampler copy = sampler;
  SamplerScratch scratch;
  copy.accept(copy.sample(logits, {}, scratch));
  CHECK(copy.mirostat_mu() != 10);
  CHECK(sampler.mirostat_mu() == 10);
  sampler.accept(static_cast<TokenId>(random() % 2000));
  CHECK(sampler.mirostat_mu() == 10);
}

TEST_CASE("validation names the parameter, the range and the value") {
  CHECK(message_of(SamplingParams{}) == "");
  auto with = [](auto change) {
    SamplingParams p;
    change(p);
    return message_of(p);
  };
  CHECK(with([](auto& p) { p.temperature = NAN; }) == "[sampling] temperature: expected a finite number, found nan");
  CHECK(with([](auto& p) { p.top_p = 1.5f; }) == "[sampling] top_p: expected a number from 0 to 1, found 1.5");
  CHECK(with([](auto& p) { p.min_p = -0.5f; }) == "[sampling] min_p: expected a number from 0 to 1, found -0.5");
  CHECK(with([](auto& p) { p.repeat_penalty = 0; }) ==
        "[sampling] repeat_penalty: expected a finite number above 0, found 0");
  CHECK(with([](auto& p) { p.mirostat = 1; }) == "[sampling] mirostat: expected 0 (off) or 2, found 1");
  const std::vector<std::pair<std::string, void (*)(SamplingParams&)>> wrong = {
      {"dynatemp_range", [](auto& p) { p.dynatemp_range = -1; }},
      {"dynatemp_exponent", [](auto& p) { p.dynatemp_exponent = INFINITY; }},
      {"typical_p", [](auto& p) { p.typical_p = 2; }},
      {"top_n_sigma", [](auto& p) { p.top_n_sigma = INFINITY; }},
      {"xtc_probability", [](auto& p) { p.xtc_probability = NAN; }},
      {"xtc_threshold", [](auto& p) { p.xtc_threshold = 1.1f; }},
      {"repeat_last_n", [](auto& p) { p.repeat_last_n = -2; }},
      {"presence_penalty", [](auto& p) { p.presence_penalty = NAN; }},
      {"frequency_penalty", [](auto& p) { p.frequency_penalty = -INFINITY; }},
      {"dry_multiplier", [](auto& p) { p.dry_multiplier = -1; }},
      {"dry_base", [](auto& p) { p.dry_base = 0.5f; }},
      {"dry_allowed_length", [](auto& p) { p.dry_allowed_length = -1; }},
      {"dry_penalty_last_n", [](auto& p) { p.dry_penalty_last_n = -5; }},
      {"dry_sequence_breakers", [](auto& p) { p.dry_sequence_breakers = {""}; }},
      {"dry_sequence_breakers", [](auto& p) { p.dry_sequence_breakers.assign(65, "x"); }},
      {"mirostat_tau", [](auto& p) { p.mirostat_tau = -1; }},
      {"mirostat_eta", [](auto& p) { p.mirostat_eta = NAN; }},
      {"logit_bias",
       [](auto& p) {
         p.logit_bias = {{-1, 1.0f}};
       }},
      {"logit_bias",
       [](auto& p) {
         p.logit_bias = {{1, INFINITY}};
       }},
      {"logit_bias",
       [](auto& p) {
         p.logit_bias = {{1, NAN}};
       }},
  };
  for (const auto& [name, change] : wrong) {
    CAPTURE(name);
    CHECK(with(change).starts_with("[sampling] " + name + ": expected "));
  }
  SamplingParams p;
  p.logit_bias = {{10, 1.0f}};
  CHECK_THROWS_WITH_AS(Sampler(p, 10), "[sampling] logit_bias: expected a token id below 10, found 10", Error);
  CHECK_THROWS_AS(Sampler(SamplingParams{}, 0), Error);
}
