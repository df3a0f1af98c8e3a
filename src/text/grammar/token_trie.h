// The texts of a vocabulary's tokens as prefix trees, to find all tokens that a grammar allows in one walk. Immutable;
// one vocabulary serves all grammars and threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/tokenizer.h"
#include "src/text/vocabulary.h"

namespace infer::grammar {

// A set of bytes below 128.
struct AsciiSet {
  uint64_t words[2] = {};
  void add(uint8_t byte) { words[byte / 64] |= uint64_t{1} << (byte % 64); }
  bool within(const AsciiSet& other) const {
    return (words[0] & ~other.words[0]) == 0 && (words[1] & ~other.words[1]) == 0;
  }
};

// Nodes are in depth-first order, so that a subtree is a range of nodes. The root has no node.
class TokenTrie {
 public:
  using Entry = std::pair<std::string_view, TokenId>;
  // Empty texts are skipped. Several tokens may have the same text.
  explicit TokenTrie(std::vector<Entry> entries);

  uint32_t size() const { return static_cast<uint32_t>(bytes_.size()); }
  uint8_t byte(uint32_t node) const { return bytes_[node]; }
  uint32_t depth(uint32_t node) const { return depths_[node]; }  // the length of the node's text
  uint32_t end(uint32_t node) const { return ends_[node]; }      // one past the last node of its subtree
  std::span<const TokenId> tokens(uint32_t node) const {
    return {tokens_.data() + first_token_[node], tokens_.data() + first_token_[node + 1]};
  }
  // Of the node and all below it.
  std::span<const TokenId> subtree_tokens(uint32_t node) const {
    return {tokens_.data() + first_token_[node], tokens_.data() + first_token_[end(node)]};
  }
  // The bytes of all nodes below; null where those are few, or have other bytes than ASCII.
  const AsciiSet* below(uint32_t node) const { return below_[node] == 0 ? nullptr : &sets_[below_[node]]; }
  uint32_t max_depth() const { return max_depth_; }

 private:
  void collect_below();

  std::vector<uint8_t> bytes_;         // [n_nodes]
  std::vector<uint32_t> depths_;       // [n_nodes]
  std::vector<uint32_t> ends_;         // [n_nodes]
  std::vector<uint32_t> first_token_;  // [n_nodes + 1]
  std::vector<TokenId> tokens_;
  std::vector<uint32_t> below_;  // [n_nodes], index into sets_; 0: none
  std::vector<AsciiSet> sets_;
  uint32_t max_depth_ = 0;
};

class GrammarVocabulary {
 public:
  // `texts`: the bytes that each token adds to the text; "" for tokens that add none, which are allowed only where a
  // grammar names them. `end_tokens` end generation.
  GrammarVocabulary(std::vector<std::string> texts, std::vector<TokenId> end_tokens);
  // The tokens of a model. `more_ends` end generation in addition to its end-of-generation tokens. `n_tokens`: the
  // minimum number of tokens, since some models have more logits than their vocabulary has tokens.
  static std::shared_ptr<const GrammarVocabulary> of(const Tokenizer& tokenizer,
                                                     const std::vector<TokenId>& more_ends = {}, size_t n_tokens = 0);

  size_t n_tokens() const { return texts_.size(); }
  std::string_view text(TokenId token) const { return texts_[static_cast<size_t>(token)]; }
  bool is_end(TokenId token) const;
  const std::vector<TokenId>& end_tokens() const { return end_tokens_; }

  // Most tokens; the few long ones are separate. A counted repetition's mask depends on the count only as far as a
  // token can reach, so short tokens need fewer cached masks.
  const TokenTrie& short_tokens() const { return short_; }
  const TokenTrie& long_tokens() const { return long_; }

 private:
  std::vector<TokenTrie::Entry> entries(bool long_ones) const;

  std::vector<std::string> texts_;   // [n_tokens]
  std::vector<TokenId> end_tokens_;  // ascending
  TokenTrie short_, long_;
};

}  // namespace infer::grammar
