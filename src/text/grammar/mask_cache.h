// Computes the tokens that a grammar allows next, for one grammar and one vocabulary. Any number of threads.
//
// For a reading (a state of the automaton and its stack) the token trie is walked with only the top frames of the stack
// known. That settles most tokens; the result is cached as a bit set. A token that leaves the known part of the stack
// is settled each time, by continuing the walk there with the rest of the stack.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "src/text/grammar/grammar.h"
#include "src/text/grammar/lookahead.h"
#include "src/text/grammar/token_trie.h"

namespace infer::grammar {

class MaskCache {
 public:
  MaskCache(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const GrammarVocabulary> vocabulary);

  const Grammar& grammar() const { return *grammar_; }
  const GrammarVocabulary& vocabulary() const { return *vocabulary_; }

  // Writes one bit per token, lowest first: [ceil(n_tokens / 64)]. Tokens that end the generation are allowed where the
  // grammar can end.
  void allowed(const MatchState& state, std::vector<uint64_t>& bits);
  // Whether allowed() includes this token.
  bool allows(const MatchState& state, TokenId token) const;
  // The state after an allowed token.
  MatchState after(const MatchState& state, TokenId token) const;

 private:
  // The cached result for one key.
  struct Entry {
    bool deepen = false;            // too many tokens escape: add one more frame of the stack to the key
    std::vector<uint64_t> bits;     // [n_words_]; empty if `tokens` is used instead
    std::vector<TokenId> tokens;    // used if there are few
    std::vector<uint32_t> escapes;  // nodes of the trie at which the known part of the stack is left
  };
  // One of the two tries, and what is cached for it.
  struct Layer {
    const TokenTrie* trie;
    std::unordered_map<std::string, Entry> entries;  // by state and top frames
  };
  // A reading cut down to the top of its stack.
  struct Local {
    Reading reading;
    std::string key;
    std::vector<Stack> rest;  // the stacks below
    bool whole = false;       // the reading has its whole stack
  };

  Local local_of(const Reading& reading, uint32_t reach, size_t extra_frames) const;
  void add_tokens(Layer& layer, const Reading& reading, std::vector<uint64_t>& bits);
  void add_token_literals(const Reading& reading, std::vector<uint64_t>& bits) const;
  Entry& entry_of(Layer& layer, const Local& local, bool may_deepen);
  void follow_escapes(const Layer& layer, std::vector<Stack> rest, const std::vector<uint32_t>& escapes,
                      std::vector<uint64_t>& bits);
  template <typename Machine>
  void walk(Machine& machine, const TokenTrie& trie, const MatchState& start, const uint32_t* from, size_t n_from,
            std::vector<uint64_t>& bits, std::vector<uint32_t>& escapes);
  void walk_any(const TokenTrie& trie, const MatchState& start, const uint32_t* from, size_t n_from,
                std::vector<uint64_t>& bits, std::vector<uint32_t>& escapes);

  std::shared_ptr<const Grammar> grammar_;
  std::shared_ptr<const GrammarVocabulary> vocabulary_;
  size_t n_words_;  // of a bit set
  std::mutex mutex_;
  // Guarded by mutex_.
  Layer short_, long_;
  Lookahead lookahead_;
  size_t cached_bytes_ = 0;
};

}  // namespace infer::grammar
