// Prompt look-up: what followed the last tokens of a text when they occurred before, in this text or in another of the
// same salt. An index of n-grams over the tokens of all texts, with a chain from each occurrence to the one before.
// Bounded: the oldest texts that have ended are forgotten first. One thread.
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
  using TextId = uint64_t;  // never given twice

  // The index holds `max_tokens` tokens, and more only while open texts alone have more.
  explicit LookupIndex(int64_t max_tokens) : max_tokens_(max_tokens) {}

  // Begins a text. Texts find each other if they are shared and have equal salts; a text that is not shared finds only
  // itself, and is forgotten when it is closed.
  TextId open(std::string salt, bool shared);
  void append(TextId text, std::span<const TokenId> tokens);
  // The text has ended.
  void close(TextId text);

  struct Match {
    int length = 0;               // tokens that agree, at most kMostCompared; 0: nothing found
    std::vector<TokenId> tokens;  // that followed, at most as many as asked for
  };
  // What followed the longest sequence of tokens that the text ends with, of the latest such place among equals. A text
  // that repeats itself is continued beyond its end. Places before a forgotten text may be missed. REQUIRES an open
  // text.
  Match find(TextId text, int most) const;

  int64_t n_tokens() const { return n_tokens_; }

  static constexpr int kGram = 3;           // the shortest match
  static constexpr int kMostCompared = 32;  // the longest
  static constexpr int kMostPlaces = 16;    // that find() compares

 private:
  // Where an n-gram ends.
  struct Place {
    TextId text = 0;  // 0: nowhere
    size_t at = 0;
  };
  struct Text {
    std::string salt;
    bool shared = false;
    std::vector<TokenId> tokens;
    std::vector<Place> earlier;  // of the n-gram that ends at this token, the occurrence before; may be gone by now
  };
  static uint64_t key(TextId id, const Text& text, size_t at);
  const Text* find_text(const Place& place) const;
  void forget(TextId id);

  int64_t max_tokens_;
  int64_t n_tokens_ = 0;
  TextId last_ = 0;
  std::unordered_map<TextId, Text> texts_;
  std::deque<TextId> closed_;                   // oldest first
  std::unordered_map<uint64_t, Place> latest_;  // occurrence of each n-gram; keys may collide
};

}  // namespace infer
