#include "src/text/answer_grammar_cache.h"

#include <algorithm>
#include <utility>

#include "src/text/grammar/grammar_mask.h"

namespace infer {
namespace {

constexpr size_t kMaxEntries = 16;

}  // namespace

std::shared_ptr<const grammar::GrammarVocabulary> AnswerGrammarCache::vocabulary() {
  const std::lock_guard lock(mutex_);
  if (!vocabulary_) {
    std::vector<TokenId> ends;
    if (format_ && format_->end.token != kNoToken) ends.push_back(format_->end.token);
    vocabulary_ = grammar::GrammarVocabulary::of(tokenizer_, ends, n_vocab_);
  }
  return vocabulary_;
}

AnswerGrammarCache::Entry AnswerGrammarCache::get(const AnswerConstraint& constraint, bool chat) {
  const std::string key = (chat ? "chat " : "text ") + constraint.key();
  {
    const std::lock_guard lock(mutex_);
    const auto known = std::find_if(entries_.begin(), entries_.end(), [&](const auto& e) { return e.first == key; });
    if (known != entries_.end()) {
      entries_.splice(entries_.begin(), entries_, known);
      return entries_.front().second;
    }
  }
  Entry entry;
  const std::shared_ptr<const grammar::Grammar> compiled =
      compile_answer_grammar(constraint, tokenizer_, chat && format_ ? &format_->calls : nullptr, &entry.warnings);
  entry.masks = std::make_shared<grammar::MaskCache>(compiled, vocabulary());
  const std::lock_guard lock(mutex_);
  entries_.emplace_front(key, entry);
  if (entries_.size() > kMaxEntries) entries_.pop_back();
  return entry;
}

std::shared_ptr<const TokenMask> AnswerGrammarCache::mask(const Entry& entry) {
  return std::make_shared<const grammar::GrammarMask>(entry.masks);
}

}  // namespace infer
