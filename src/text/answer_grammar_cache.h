// Compiles the answer grammars of one model and keeps the most recently used ones with their token masks, so that
// requests with the same constraint share them. Any number of threads.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/text/answer_grammar.h"
#include "src/text/chat_answer.h"
#include "src/text/grammar/mask_cache.h"
#include "src/text/token_mask.h"

namespace infer {

class AnswerGrammarCache {
 public:
  // `n_vocab`: the width of the logits. `format`: of the model's template; null if it has none. The tokenizer must
  // outlive this.
  AnswerGrammarCache(const Tokenizer& tokenizer, size_t n_vocab, std::shared_ptr<const ChatFormat> format)
      : tokenizer_(tokenizer), n_vocab_(n_vocab), format_(std::move(format)) {}

  struct Entry {
    std::shared_ptr<grammar::MaskCache> masks;
    std::vector<std::string> warnings;  // keywords that a lenient schema ignores
  };
  // Compiles on the caller's thread. `chat`: the answer is a chat answer. Throws as compile_answer_grammar() does.
  Entry get(const AnswerConstraint& constraint, bool chat);

  // A mask for the start of an answer.
  static std::shared_ptr<const TokenMask> mask(const Entry& entry);

 private:
  std::shared_ptr<const grammar::GrammarVocabulary> vocabulary();

  const Tokenizer& tokenizer_;
  const size_t n_vocab_;
  const std::shared_ptr<const ChatFormat> format_;
  std::mutex mutex_;
  std::shared_ptr<const grammar::GrammarVocabulary> vocabulary_;  // guarded by mutex_; created on first use
  std::list<std::pair<std::string, Entry>> entries_;              // guarded by mutex_; by key, most recently used first
};

}  // namespace infer
