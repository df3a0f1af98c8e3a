// Prompt lookup: finds what followed the last tokens of a text at an earlier occurrence, in this text or in another
// with the same salt. An index of the n-grams of all texts, with a chain from each occurrence to the one before.
// Bounded: the oldest closed texts are forgotten first. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/text/vocabulary.h"

namespace infer {

class LookupIndex {
 public:
  using TextId = uint64_t;  // never reused

  // The index holds `max_tokens` tokens; more only if the open texts alone exceed that.
  explicit LookupIndex(int64_t max_tokens) : max_tokens_(max_tokens) {}

  // Begins a text. Shared texts with the same salt find each other; a text that is not shared finds only itself, and is
  // forgotten when it is closed.
  TextId open(std::string salt, bool shared);
  void append(TextId text, std::span<const TokenId> tokens);
  // The text has ended.
  void close(TextId text);

  struct Match {
    int length = 0;               // matching tokens, at most kMostCompared; 0: nothing found
    std::vector<TokenId> tokens;  // the tokens that followed, at most as many as asked for
  };
  // What followed the longest match of the end of the text; among equal lengths, the latest one. A match that reaches
  // the end of the text continues with its own result, so repetition is extended. Occurrences older than a forgotten
  // text may be missed. REQUIRES an open text.
  Match find(TextId text, int most) const;

  int64_t n_tokens() const { return n_tokens_; }

  static constexpr int kGram = 3;           // the shortest match
  static constexpr int kMostCompared = 32;  // the longest
  static constexpr int kMostPlaces = 16;    // occurrences that find() compares

 private:
  // The end of an n-gram.
  struct Place {
    TextId text = 0;  // 0: none
    size_t at = 0;
  };
  struct Text {
    std::string salt;
    bool shared = false;
    std::vector<TokenId> tokens;
    std::vector<Place> earlier;  // the previous occurrence of the n-gram ending at each token; may have been forgotten
  };
  static uint64_t key(TextId id, const Text& text, size_t at);
  const Text* find_text(const Place& place) const;
  void forget(TextId id);

  int64_t max_tokens_;
  int64_t n_tokens_ = 0;
  TextId last_ = 0;
  std::unordered_map<TextId, Text> texts_;
  std::deque<TextId> closed_;                   // oldest first
  std::unordered_map<uint64_t, Place> latest_;  // occurrence of each n-gram, by hash; hashes may collide
};

}  // namespace infer
