// Each stage of the chain against a naive implementation: full sorts, double precision, the C library.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "ggml-like/error.h"
#include "src/text/logprobs.h"
#include "src/text/sampler_noise.h"
#include "src/text/sampler_stages.h"

using namespace infer;

namespace {

struct Naive {
  TokenId id;
  double logit, p;
};

// All candidates with their probabilities, best first.
std::vector<Naive> softmax(const std::vector<Candidate>& items, double temperature = 1) {
  std::vector<Naive> all;
  double best = -INFINITY, sum = 0;
  for (const auto& item : items) best = std::max<double>(best, item.logit);
  for (const auto& item : items) sum += std::exp((item.logit - best) / temperature);
  for (const auto& item : items)
    all.push_back({item.id, item.logit, std::exp((item.logit - best) / temperature) / sum});
  std::stable_sort(all.begin(), all.end(),
                   [](const Naive& a, const Naive& b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; });
  return all;
}

std::set<TokenId> ids(const std::vector<Naive>& list) {
  std::set<TokenId> result;
  for (const auto& item : list) result.insert(item.id);
  return result;
}

std::set<TokenId> ids(const Candidates& c) {
  std::set<TokenId> result;
  for (const auto& item : c.items) result.insert(item.id);
  CHECK(result.size() == c.items.size());
  if (c.best_first) CHECK(std::is_sorted(c.items.begin(), c.items.end(), better));
  return result;
}

// Logits like those of a model, or rounded ones with many ties; some are -inf.
std::vector<float> random_logits(std::mt19937& random, size_t n) {
  std::normal_distribution<float> normal(0, 4);
  std::uniform_int_distribution<int> coarse(-3, 3);
  const bool ties = random() % 3 == 0;
  std::vector<float> logits(n);
  for (float& x : logits)
    x = random() % 20 == 0 ? -INFINITY : ties ? static_cast<float>(coarse(random)) : normal(random);
  logits[random() % n] = 3;  // at least one is finite
  return logits;
}

Candidates candidates_of(std::mt19937& random, const std::vector<float>& logits) {
  Candidates c;
  select_top(logits, -INFINITY, random() % 2 ? 0 : static_cast<int64_t>(1 + random() % logits.size()), c);
  return c;
}

template <typename Check>
void for_random_candidates(uint32_t seed, Check check) {
  std::mt19937 random(seed);
  for (int round = 0; round < 400; ++round) {
    const size_t n = round % 50 == 0 ? 5000 : 1 + random() % 300;
    check(random, candidates_of(random, random_logits(random, n)));
  }
}

}  // namespace

TEST_CASE("find_best finds the first maximum and refuses values that are not logits") {
  CHECK(find_best(std::vector<float>{1, 3, 3, 2}) == 1);
  CHECK(find_best(std::vector<float>{-INFINITY, -INFINITY}) == kNoToken);
  CHECK(find_best(std::vector<float>{-INFINITY, -3e38f}) == 1);
  CHECK_THROWS_WITH_AS(find_best(std::vector<float>{1, NAN}),
                       "[sampling] logit of token 1: expected a finite number or -inf, found nan", Error);
  CHECK_THROWS_AS(find_best(std::vector<float>{INFINITY, 1}), Error);
}

TEST_CASE("select_top equals a full sort") {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const std::vector<float> logits = random_logits(random, 1 + random() % 3000);
    const int64_t k = static_cast<int64_t>(random() % 400);
    const float floor = round % 3 ? -INFINITY : 0.5f;
    std::vector<Candidate> all;
    for (size_t i = 0; i < logits.size(); ++i) {
      if (logits[i] != -INFINITY && logits[i] >= floor) all.push_back({static_cast<TokenId>(i), logits[i]});
    }
    std::stable_sort(all.begin(), all.end(), [](auto a, auto b) { return a.logit > b.logit; });
    if (k > 0 && static_cast<size_t>(k) < all.size()) all.resize(k);
    Candidates c;
    select_top(logits, floor, k, c);
    if (!c.best_first) std::sort(c.items.begin(), c.items.end(), better);
    REQUIRE(c.items.size() == all.size());
    for (size_t i = 0; i < all.size(); ++i) CHECK(c.items[i].id == all[i].id);
  }
}

TEST_CASE("keep_top_p keeps the shortest best-first list whose sum reaches p") {
  for_random_candidates(4, [](std::mt19937& random, Candidates c) {
    const double p = std::uniform_real_distribution<double>(0, 1)(random);
    std::vector<Naive> expected;
    double sum = 0;
    for (const Naive& item : softmax(c.items)) {
      expected.push_back(item);
      sum += item.p;
      if (sum >= p) break;
    }
    std::vector<RankedCandidate> work;
    keep_top_p(c, p, work);
    CHECK(ids(c) == ids(expected));
  });
}

TEST_CASE("keep_min_p keeps tokens that are at least p times as probable as the best") {
  for_random_candidates(5, [](std::mt19937& random, Candidates c) {
    const double p = std::uniform_real_distribution<double>(0.001, 1)(random);
    std::vector<Naive> expected = softmax(c.items);
    std::erase_if(expected, [&, best = expected[0].p](const Naive& item) { return item.p < p * best; });
    keep_min_p(c, p);
    CHECK(ids(c) == ids(expected));
  });
}

TEST_CASE("keep_typical keeps the tokens whose surprise is closest to the expected one") {
  for_random_candidates(6, [](std::mt19937& random, Candidates c) {
    const double p = std::uniform_real_distribution<double>(0, 1)(random);
    std::vector<Naive> all = softmax(c.items);
    double entropy = 0;
    for (const Naive& item : all) entropy -= item.p > 0 ? item.p * std::log(item.p) : 0;
    // Equal logits have equal distances; comparing the logits keeps rounding from affecting the order.
    std::stable_sort(all.begin(), all.end(), [&](const Naive& a, const Naive& b) {
      return a.logit != b.logit && std::fabs(-std::log(a.p) - entropy) < std::fabs(-std::log(b.p) - entropy);
    });
    std::vector<Naive> expected;
    double sum = 0;
    for (const Naive& item : all) {
      expected.push_back(item);
      sum += item.p;
      if (sum > p) break;
    }
    std::vector<RankedCandidate> work;
    keep_typical(c, p, work);
    CHECK(ids(c) == ids(expected));
  });
}

// What a full sort keeps: best first by `key`, until the probabilities reach p (or exceed it).
std::set<TokenId> kept_by_sorting(const Candidates& c, double p, bool typical) {
  std::vector<Naive> all = softmax(c.items);
  double entropy = 0;
  for (const Naive& item : all) entropy -= item.p > 0 ? item.p * std::log(item.p) : 0;
  if (typical) {
    std::stable_sort(all.begin(), all.end(), [&](const Naive& a, const Naive& b) {
      return a.logit != b.logit && std::fabs(-std::log(a.p) - entropy) < std::fabs(-std::log(b.p) - entropy);
    });
  }
  std::set<TokenId> kept;
  double sum = 0;
  for (const Naive& item : all) {
    kept.insert(item.id);
    sum += item.p;
    if (typical ? sum > p : sum >= p) break;
  }
  return kept;
}

TEST_CASE("selections from a large vocabulary equal a full sort and keep the order of the list") {
  std::mt19937 random(13);
  const size_t n = 50000;
  std::vector<float> flat(n), steep(n);
  std::normal_distribution<float> normal(0, 1);
  for (size_t i = 0; i < n; ++i) flat[i] = normal(random), steep[i] = 4 * normal(random);
  std::vector<RankedCandidate> work;
  for (const auto* logits : {&flat, &steep}) {
    for (const double p : {0.05, 0.5, 0.95, 0.99999}) {
      for (const bool typical : {false, true}) {
        CAPTURE(p);
        CAPTURE(typical);
        Candidates c;
        select_top(*logits, -INFINITY, 0, c);
        const std::set<TokenId> expected = kept_by_sorting(c, p, typical);
        if (typical) keep_typical(c, p, work);
        else keep_top_p(c, p, work);
        CHECK_FALSE(c.best_first);
        CHECK(std::is_sorted(c.items.begin(), c.items.end(), [](auto a, auto b) { return a.id < b.id; }));
        CHECK(ids(c) == expected);
      }
    }
    Candidates c, all;
    select_top(*logits, -INFINITY, 20000, c);
    CHECK_FALSE(c.best_first);
    select_top(*logits, -INFINITY, 0, all);
    std::sort(all.items.begin(), all.items.end(), better);
    all.items.resize(20000);
    CHECK(ids(c) == ids(all));
  }
}

TEST_CASE("exclude_top_choices leaves the least probable of those above the threshold") {
  for_random_candidates(7, [](std::mt19937& random, Candidates c) {
    const double threshold = std::uniform_real_distribution<double>(0, 0.6)(random) * (random() % 4 ? 0.1 : 1);
    std::vector<Naive> expected = softmax(c.items);
    size_t above = 0;
    while (above < expected.size() && expected[above].p >= threshold) ++above;
    if (threshold <= 0.5 && above > 1) expected.erase(expected.begin(), expected.begin() + above - 1);
    exclude_top_choices(c, threshold);
    CHECK(ids(c) == ids(expected));
  });
}

TEST_CASE("exclude_top_choices at its edges") {
  Candidates even{{{0, 1.0f}, {1, 1.0f}}, true};
  exclude_top_choices(even, 0.5);  // both have exactly one half
  CHECK(ids(even) == std::set<TokenId>{1});
  Candidates one{{{7, 1.0f}}, true};
  exclude_top_choices(one, 0.1);
  CHECK(ids(one) == std::set<TokenId>{7});
  Candidates sure{{{0, 100.0f}, {1, 0.0f}}, true};
  exclude_top_choices(sure, 0.1);  // one candidate above the threshold stays
  CHECK(sure.items.size() == 2);
  Candidates all{{{0, 2.0f}, {1, 1.0f}, {2, 0.0f}}, true};
  exclude_top_choices(all, 0);
  CHECK(ids(all) == std::set<TokenId>{2});
}

TEST_CASE("keep_surprise_up_to keeps tokens with at most mu bits, and the best") {
  for_random_candidates(8, [](std::mt19937& random, Candidates c) {
    const double mu = std::uniform_real_distribution<double>(-1, 12)(random);
    const double temperature = std::uniform_real_distribution<double>(0.3, 3)(random);
    std::vector<Naive> expected = softmax(c.items, temperature);
    std::erase_if(expected, [&, first = expected[0].id](const Naive& item) {
      return -std::log2(item.p) > mu && item.id != first;
    });
    keep_surprise_up_to(c, temperature, mu);
    CHECK(ids(c) == ids(expected));
  });
}

TEST_CASE("top_n_sigma_floor is n standard deviations below the best") {
  std::mt19937 random(9);
  for (int round = 0; round < 100; ++round) {
    const std::vector<float> logits = random_logits(random, 2 + random() % 500);
    long double sum = 0, squares = 0, count = 0, best = -INFINITY;
    for (float x : logits) {
      if (x == -INFINITY) continue;
      sum += x, squares += static_cast<long double>(x) * x, ++count, best = std::max<long double>(best, x);
    }
    const double expected = static_cast<double>(best - 1.5L * sqrtl(squares / count - sum / count * (sum / count)));
    CHECK(top_n_sigma_floor(logits, 1.5f) == doctest::Approx(expected));
  }
  CHECK(top_n_sigma_floor(std::vector<float>{2, 2, 2}, 1) == 2);
}

TEST_CASE("dynamic temperature spans its range with the entropy") {
  Candidates even{{{0, 1.0f}, {1, 1.0f}, {2, 1.0f}}, true}, sure{{{0, 500.0f}, {1, 0.0f}}, true};
  CHECK(dynamic_temperature(even, 1, 0.5, 2) == doctest::Approx(1.5));
  CHECK(dynamic_temperature(sure, 1, 0.5, 2) == doctest::Approx(0.5));
  CHECK(dynamic_temperature(sure, 0.3, 0.5, 2) == 0);
  for_random_candidates(10, [](std::mt19937&, Candidates c) {
    if (c.items.size() < 2) return;
    double entropy = 0;
    for (const Naive& item : softmax(c.items)) entropy -= item.p > 0 ? item.p * std::log(item.p) : 0;
    const double share = entropy / std::log(static_cast<double>(c.items.size()));
    CHECK(dynamic_temperature(c, 0.8, 0.3, 1.7) == doctest::Approx(0.5 + 0.6 * std::pow(share, 1.7)));
  });
}

TEST_CASE("gumbel_argmax is the argmax over all candidates, in any order of them") {
  for_random_candidates(11, [](std::mt19937& random, Candidates c) {
    const double temperature = std::uniform_real_distribution<double>(0.1, 3)(random);
    const uint64_t seed = random();
    const int64_t position = random() % 1000;
    double winning = -INFINITY;
    TokenId expected = kNoToken;
    for (const Naive& item : softmax(c.items)) {
      const double u = noise_uniform(noise_bits(seed, position, NoiseStream::kToken, static_cast<uint32_t>(item.id)));
      const double score = item.logit / temperature - std::log(-std::log(u));
      if (score > winning) winning = score, expected = item.id;
    }
    CHECK(gumbel_argmax(c, temperature, seed, position).id == expected);
    std::shuffle(c.items.begin(), c.items.end(), random);
    c.best_first = false;
    CHECK(gumbel_argmax(c, temperature, seed, position).id == expected);
  });
}

TEST_CASE("log-probabilities against long double") {
  std::mt19937 random(12);
  for (int round = 0; round < 200; ++round) {
    const std::vector<float> logits = random_logits(random, 1 + random() % 700);
    long double sum = 0;
    for (float x : logits) sum += expl(x);
    CHECK(log_sum_exp(logits) == doctest::Approx(static_cast<double>(logl(sum))).epsilon(1e-14));
    const auto top = top_logprobs(logits, 1 + random() % 30);
    std::vector<Naive> expected;
    for (size_t i = 0; i < logits.size(); ++i) {
      if (logits[i] != -INFINITY) expected.push_back({static_cast<TokenId>(i), logits[i], 0});
    }
    std::stable_sort(expected.begin(), expected.end(), [](auto& a, auto& b) { return a.logit > b.logit; });
    REQUIRE(top.size() <= expected.size());
    for (size_t i = 0; i < top.size(); ++i) {
      CHECK(top[i].token == expected[i].id);
      CHECK(top[i].logprob == logprob(logits, top[i].token));
      CHECK(std::fabs(top[i].logprob - static_cast<double>(logits[top[i].token] - logl(sum))) < 1e-13 * 40);
    }
  }
}

TEST_CASE("log-probabilities at the extremes") {
  CHECK(logprob(std::vector<float>{5}, 0) == 0);
  CHECK(logprob(std::vector<float>{-INFINITY, 5}, 0) == -INFINITY);
  CHECK(logprob(std::vector<float>{3e38f, -3e38f}, 0) == 0);
  CHECK(logprob(std::vector<float>{3e38f, -3e38f}, 1) < -1e38);
  CHECK(top_logprobs(std::vector<float>{-INFINITY, 5, -INFINITY}, 3).size() == 1);
  CHECK(top_logprobs(std::vector<float>{1, 2}, 0).empty());
  CHECK(top_logprobs(std::vector<float>(40, 1.0f), 3)[2].token == 2);
  CHECK_THROWS_AS(log_sum_exp(std::vector<float>{-INFINITY}), Error);
  CHECK_THROWS_AS(log_sum_exp(std::vector<float>{}), Error);
  CHECK_THROWS_AS(log_sum_exp(std::vector<float>{NAN}), Error);
  CHECK_THROWS_AS(logprob(std::vector<float>{1}, 1), Error);
  CHECK_THROWS_AS(logprob(std::vector<float>{1}, -1), Error);
}
