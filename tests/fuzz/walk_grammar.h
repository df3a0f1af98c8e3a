// What the grammar fuzz targets share: matches a text, and compares masks with trying each token.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/grammar/grammar_mask.h"

namespace infer::fuzz {

inline void require(bool condition) {
  if (!condition) __builtin_trap();
}

inline grammar::Limits small_limits() {
  grammar::Limits limits;
  limits.expressions = 20'000;
  limits.nfa_edges = 20'000;
  limits.states = 5'000;
  limits.work = 200'000;
  limits.stacks = 200;
  return limits;
}

inline std::shared_ptr<const grammar::GrammarVocabulary> small_vocabulary() {
  static const auto vocabulary = [] {
    std::vector<std::string> texts = {"",   "",     "\"",   "\":",  "\", \"", "{\"",      "}}",    "[[",
                                      "],", "true", "a",    "ab",   "abc",    "0",        "12",    "-1.5",
                                      " ",  "\n  ", "\xC3", "\xA9", "é",      "\xF0\x9F", "\\u00", "\\n"};
    texts.push_back("                                ");
    for (char c = ' '; c < 127; ++c) texts.push_back(std::string(1, c));
    return std::make_shared<const grammar::GrammarVocabulary>(std::move(texts), std::vector<TokenId>{0});
  }();
  return vocabulary;
}

// Follows `text`, then the first tokens that are allowed; at each step the mask says what trying each token says.
inline void walk_grammar(const std::shared_ptr<const grammar::Grammar>& grammar, std::string_view text) {
  grammar->match(text.substr(0, 200));
  const auto vocabulary = small_vocabulary();
  const auto cache = std::make_shared<grammar::MaskCache>(grammar, vocabulary);
  grammar::GrammarMask mask(cache);
  require(grammar->forced(mask.state(), 50).size() <= 50);
  for (int step = 0; step < 6; ++step) {
    const AllowedTokens allowed = mask.allowed();
    TokenId next = kNoToken;
    for (TokenId token = 0; token < static_cast<TokenId>(vocabulary->n_tokens()); ++token) {
      const bool listed = allowed[static_cast<size_t>(token) / 64] >> (token % 64) & 1;
      if (vocabulary->is_end(token)) {
        require(listed == mask.can_end());
        continue;
      }
      require(listed == !cache->after(mask.state(), token).is_dead());
      const bool wanted = next == kNoToken ||
                          (static_cast<size_t>(step) < text.size() && token % 7 == text[static_cast<size_t>(step)] % 7);
      if (listed && wanted) next = token;
    }
    if (next == kNoToken) return;
    mask.accept(next);
  }
  mask.rollback(3);
  mask.allowed();
}

}  // namespace infer::fuzz
