#include "src/engine/draft/lookup_index.h"

#include <doctest/doctest.h>

#include <random>

using namespace infer;

namespace {

using Tokens = std::vector<TokenId>;

LookupIndex::TextId add(LookupIndex& index, const Tokens& tokens, const std::string& salt = "", bool shared = true) {
  const LookupIndex::TextId text = index.open(salt, shared);
  index.append(text, tokens);
  return text;
}

}  // namespace

TEST_CASE("look-up continues the end of the text as it continued before") {
  LookupIndex index(1000);
  const auto text = add(index, {1, 2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4});
  const LookupIndex::Match match = index.find(text, 4);
  CHECK(match.length == 3);
  CHECK(match.tokens == Tokens{5, 6, 7, 8});
  CHECK(index.find(text, 1).tokens == Tokens{5});
  CHECK(index.find(text, 0).tokens.empty());
  index.append(text, Tokens{99});
  CHECK(index.find(text, 4).tokens.empty());
  CHECK(index.find(text, 4).length == 0);
}

TEST_CASE("look-up needs three tokens that agree") {
  LookupIndex index(1000);
  CHECK(index.find(add(index, {1, 2}), 4).tokens.empty());
  CHECK(index.find(add(index, {7, 8, 9, 5, 8, 9}), 4).tokens.empty());
  CHECK(index.find(add(index, {7, 8, 9, 5, 7, 8, 9}), 1).tokens == Tokens{5});
}

TEST_CASE("look-up prefers the longest match, then the latest") {
  LookupIndex index(1000);
  const auto longest = add(index, {9, 1, 2, 3, 10, 8, 1, 2, 3, 20, 5, 1, 2, 3, 30, 8, 1, 2, 3});
  CHECK(index.find(longest, 1).length == 4);
  CHECK(index.find(longest, 1).tokens == Tokens{20});
  const auto latest = add(index, {1, 2, 3, 10, 1, 2, 3, 20, 7, 1, 2, 3}, "other");
  CHECK(index.find(latest, 1).tokens == Tokens{20});
}

TEST_CASE("look-up goes on with a text that repeats itself") {
  LookupIndex index(1000);
  const auto text = add(index, {1, 2, 1, 2, 1, 2, 1});
  CHECK(index.find(text, 6).tokens == Tokens{2, 1, 2, 1, 2, 1});
  const auto same = add(index, {4, 4, 4, 4}, "s");
  CHECK(index.find(same, 5).tokens == Tokens{4, 4, 4, 4, 4});
}

TEST_CASE("look-up finds other texts with the same salt, and no others") {
  LookupIndex index(1000);
  const auto first = add(index, {1, 2, 3, 4, 5}, "a");
  const auto second = add(index, {1, 2, 3}, "a");
  CHECK(index.find(second, 9).tokens == Tokens{4, 5});
  CHECK(index.find(add(index, {1, 2, 3}, "b"), 9).tokens.empty());
  CHECK(index.find(add(index, {1, 2, 3}, "a", false), 9).tokens.empty());
  index.close(first);  // what it wrote stays
  CHECK(index.find(second, 9).tokens == Tokens{4, 5});

  LookupIndex alone(1000);
  const auto hidden = add(alone, {1, 2, 3, 4, 5}, "a", false);
  const auto other = add(alone, {1, 2, 3}, "a");
  CHECK(alone.find(other, 9).tokens.empty());
  alone.append(hidden, Tokens{1, 2, 3});
  CHECK(alone.find(hidden, 2).tokens == Tokens{4, 5});
  CHECK(alone.n_tokens() == 11);
  alone.close(hidden);
  CHECK(alone.n_tokens() == 3);
}

TEST_CASE("look-up does not end at a match that nothing follows") {
  LookupIndex index(1000);
  add(index, {1, 2, 3, 4});
  add(index, {1, 2, 3});
  CHECK(index.find(add(index, {1, 2, 3}), 9).tokens == Tokens{4});
}

TEST_CASE("look-up forgets the oldest texts that have ended") {
  LookupIndex index(20);
  const auto first = add(index, {1, 2, 3, 4, 5, 6, 7, 8});
  const auto second = add(index, {11, 12, 13, 14, 15, 16, 17, 18});
  index.close(second);
  index.close(first);
  const auto open = add(index, {1, 2, 3});
  CHECK(index.n_tokens() == 19);
  CHECK(index.find(open, 1).tokens == Tokens{4});
  index.append(open, Tokens{11, 12});  // `second` ended before
  CHECK(index.n_tokens() == 13);
  index.append(open, Tokens{13});
  CHECK(index.find(open, 1).tokens.empty());
  index.append(open, Tokens{4, 5, 6});
  CHECK(index.find(open, 1).tokens == Tokens{7});
  index.append(open, Tokens(30, 5));  // an open text is never forgotten
  CHECK(index.n_tokens() == 39);
  CHECK(index.find(open, 2).tokens == Tokens{5, 5});
}

TEST_CASE("look-up finds what a search through all texts finds") {
  std::mt19937 random(3);
  LookupIndex index(100000);
  std::vector<Tokens> texts(6);
  std::vector<LookupIndex::TextId> ids;
  for (size_t i = 0; i < texts.size(); ++i) ids.push_back(index.open(i % 2 ? "odd" : "even", true));
  for (int step = 0; step < 3000; ++step) {
    const size_t i = random() % texts.size();
    const Tokens more{static_cast<TokenId>(random() % 12)};
    index.append(ids[i], more);
    texts[i].push_back(more[0]);
    const LookupIndex::Match match = index.find(ids[i], 3);
    if (match.length == 0) continue;
    // The match is there: its tokens follow an occurrence of the last `length` tokens in a text of the same salt.
    REQUIRE(match.length >= LookupIndex::kGram);
    REQUIRE(static_cast<size_t>(match.length) < texts[i].size());
    const Tokens tail(texts[i].end() - match.length, texts[i].end());
    bool there = false;
    for (size_t j = i % 2; j < texts.size(); j += 2) {
      Tokens whole = texts[j];
      if (j == i) whole.insert(whole.end(), match.tokens.begin(), match.tokens.end());
      for (size_t at = 0; at + tail.size() + match.tokens.size() <= whole.size(); ++at) {
        if (j == i && at + tail.size() >= texts[i].size()) break;
        there = there || (std::equal(tail.begin(), tail.end(), whole.begin() + static_cast<std::ptrdiff_t>(at)) &&
                          std::equal(match.tokens.begin(), match.tokens.end(),
                                     whole.begin() + static_cast<std::ptrdiff_t>(at + tail.size())));
      }
    }
    CHECK(there);
  }
}
