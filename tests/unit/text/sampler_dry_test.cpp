// DRY against a brute-force search for repetitions, and the conversion of breakers to tokens.
#include "src/text/sampler_dry.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

using namespace infer;

namespace {

using Sequences = std::vector<std::vector<TokenId>>;

// The longest repetition that each token would continue, found by comparing every pair of ends.
std::map<TokenId, int> naive_repeats(const std::vector<TokenId>& text, int limit) {
  std::map<TokenId, int> longest;
  const int n = static_cast<int>(text.size());
  for (int end = 1; end < n; ++end) {  // text[0, end) ends as the whole text does; text[end] came next
    int length = 0;
    while (length < end && text[end - 1 - length] == text[n - 1 - length]) ++length;
    length = std::min(length, limit);
    int& known = longest.try_emplace(text[end], -1).first->second;
    known = std::max(known, length);
  }
  return longest;
}

// The number of tokens after the last breaker, which begins the shortest suffix of the text that starts with one.
int naive_limit(const std::vector<TokenId>& text, const Sequences& breakers) {
  const int n = static_cast<int>(text.size());
  for (int start = n - 1; start >= 0; --start) {
    int longest = 0;
    for (const auto& b : breakers) {
      const int size = static_cast<int>(b.size());
      if (start + size <= n && std::equal(b.begin(), b.end(), text.begin() + start)) longest = std::max(longest, size);
    }
    if (longest > 0) return n - start - longest;
  }
  return n;
}

SamplingParams dry(float multiplier = 0.8f, int allowed = 2, int last_n = -1) {
  SamplingParams p;
  p.dry_multiplier = multiplier, p.dry_allowed_length = allowed, p.dry_penalty_last_n = last_n;
  return p;
}

std::map<TokenId, float> penalties_of(const SamplingParams& p, const Sequences& breakers,
                                      const std::vector<TokenId>& text) {
  std::map<TokenId, float> result;
  for (const auto& [token, penalty] : dry_penalties(p, DryBreakers(breakers), text))
    CHECK(result.emplace(token, penalty).second);
  return result;
}

}  // namespace

TEST_CASE("DRY penalties equal a brute-force search") {
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    const int alphabet = 1 + random() % 5;
    std::vector<TokenId> text(random() % 40);
    for (TokenId& t : text) t = static_cast<TokenId>(random() % alphabet);
    Sequences breakers;
    for (size_t i = random() % 3; i > 0; --i) {
      breakers.emplace_back(1 + random() % 3);
      for (TokenId& t : breakers.back()) t = static_cast<TokenId>(random() % (alphabet + 2));
    }
    const int allowed = static_cast<int>(random() % 4);
    const int last_n = static_cast<int>(random() % 40) - 1;
    const auto found = penalties_of(dry(0.8f, allowed, last_n), breakers, text);

    std::vector<TokenId> window = text;
    if (last_n >= 0 && static_cast<size_t>(last_n) < text.size()) window.assign(text.end() - last_n, text.end());
    const int limit = naive_limit(window, breakers);
    std::map<TokenId, float> expected;
    if (last_n != 0 && static_cast<int>(window.size()) > allowed && limit >= allowed) {
      for (const auto& [token, length] : naive_repeats(window, limit)) {
        const bool breaker = std::find(breakers.begin(), breakers.end(), std::vector<TokenId>{token}) != breakers.end();
        if (length >= allowed && !breaker)
          expected[token] = static_cast<float>(0.8f * std::pow(1.75, length - allowed));
      }
    }
    REQUIRE(found.size() == expected.size());
    for (const auto& [token, penalty] : expected) CHECK(found.at(token) == doctest::Approx(penalty));
  }
}

TEST_CASE("DRY on the text of its description") {
  // a b c c b c y a b c: c would continue 3 tokens, b 1, y 2.
  const std::vector<TokenId> text = {1, 2, 3, 3, 2, 3, 9, 1, 2, 3};
  const auto found = penalties_of(dry(1.0f, 1), {}, text);
  CHECK(found.size() == 3);
  CHECK(found.at(3) == doctest::Approx(1.75 * 1.75));
  CHECK(found.at(2) == doctest::Approx(1.0));
  CHECK(found.at(9) == doctest::Approx(1.75));
  CHECK(penalties_of(dry(1.0f, 1), {{2}}, text).at(3) == doctest::Approx(1.0));  // the breaker limits the match to 1
  CHECK(penalties_of(dry(0.0f, 1), {}, text).empty());
  CHECK(penalties_of(dry(1.0f, 1), {}, {}).empty());
}

TEST_CASE("a DRY penalty stays finite on long repetitions") {
  const std::vector<TokenId> text(5000, 7);
  SamplingParams p = dry(3e38f);
  p.dry_base = 3e38f;
  CHECK(std::isfinite(penalties_of(p, {}, text).at(7)));
  p.dry_base = 1.0f, p.dry_multiplier = 2;
  CHECK(penalties_of(p, {}, text).at(7) == 2);
}

TEST_CASE("breakers become every token sequence that may spell them") {
  const std::vector<std::string> vocabulary = {"a", "b", "ab", "xa", "b\n", "\n", "xaab"};
  auto piece = [&](TokenId id) { return vocabulary[id]; };
  auto encode = [](const std::string& text) {
    std::vector<TokenId> tokens;
    for (const char c : text) tokens.push_back(c == 'a' ? 0 : 1);
    return tokens;
  };
  const std::vector<std::string> strings = {"ab", "\n", ""};
  const Sequences expected = {{0, 1}, {2}, {3, 1}, {4}, {5}, {6}};
  CHECK(dry_breaker_sequences(strings, vocabulary.size(), piece, encode) == expected);
  const DryBreakers breakers(expected);
  CHECK(breakers.size() == 6);
  CHECK(breakers.is_single_token(4));
  CHECK_FALSE(breakers.is_single_token(0));
  CHECK(breakers.tokens_since_last(std::vector<TokenId>{5, 1, 1}) == 2);
  CHECK(breakers.tokens_since_last(std::vector<TokenId>{1, 0, 1}) == 0);
  CHECK(breakers.tokens_since_last(std::vector<TokenId>{1, 1, 0}) == 3);
}
