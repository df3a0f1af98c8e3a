#include "src/text/grammar/token_trie.h"

#include <algorithm>

namespace infer::grammar {
namespace {

constexpr size_t kMaxShortBytes = 20;
constexpr uint32_t kFewBelow = 6;  // nodes that are visited sooner than their set is compared

}  // namespace

TokenTrie::TokenTrie(std::vector<Entry> entries) {
  std::sort(entries.begin(), entries.end());
  std::vector<uint32_t> open;  // the nodes along the previous text
  std::string_view previous;
  const auto close_to = [&](size_t depth) {
    for (; open.size() > depth; open.pop_back()) ends_[open.back()] = size();
  };
  for (const auto& [text, token] : entries) {
    if (text.empty()) continue;
    size_t common = 0;
    while (common < std::min(text.size(), previous.size()) && text[common] == previous[common]) ++common;
    close_to(common);
    for (size_t i = common; i < text.size(); ++i) {
      open.push_back(size());
      first_token_.push_back(static_cast<uint32_t>(tokens_.size()));
      bytes_.push_back(static_cast<uint8_t>(text[i]));
      depths_.push_back(static_cast<uint32_t>(i + 1));
      ends_.push_back(0);
    }
    tokens_.push_back(token);
    max_depth_ = std::max(max_depth_, static_cast<uint32_t>(text.size()));
    previous = text;
  }
  close_to(0);
  first_token_.push_back(static_cast<uint32_t>(tokens_.size()));
  collect_below();
}

void TokenTrie::collect_below() {
  struct Below {
    AsciiSet set;
    bool others = false;
  };
  std::vector<Below> by_depth(max_depth_ + 2);  // of the nodes seen so far at that depth that have the same parent
  below_.assign(size(), 0);
  sets_.resize(1);
  for (uint32_t node = size(); node-- > 0;) {
    Below& own = by_depth[depth(node) + 1];
    Below& siblings = by_depth[depth(node)];
    if (!own.others && end(node) - node > kFewBelow) {
      below_[node] = static_cast<uint32_t>(sets_.size());
      sets_.push_back(own.set);
    }
    siblings.others = siblings.others || own.others || byte(node) >= 128;
    for (int i = 0; i < 2; ++i) siblings.set.words[i] |= own.set.words[i];
    if (byte(node) < 128) siblings.set.add(byte(node));
    own = {};
  }
}

GrammarVocabulary::GrammarVocabulary(std::vector<std::string> texts, std::vector<TokenId> end_tokens)
    : texts_(std::move(texts)), end_tokens_(std::move(end_tokens)), short_(entries(false)), long_(entries(true)) {
  std::sort(end_tokens_.begin(), end_tokens_.end());
}

std::vector<TokenTrie::Entry> GrammarVocabulary::entries(bool long_ones) const {
  std::vector<TokenTrie::Entry> out;
  for (size_t id = 0; id < texts_.size(); ++id) {
    const auto token = static_cast<TokenId>(id);
    const bool ends = std::find(end_tokens_.begin(), end_tokens_.end(), token) != end_tokens_.end();
    if (!ends && (texts_[id].size() > kMaxShortBytes) == long_ones) out.emplace_back(texts_[id], token);
  }
  return out;
}

std::shared_ptr<const GrammarVocabulary> GrammarVocabulary::of(const Tokenizer& tokenizer,
                                                               const std::vector<TokenId>& more_ends, size_t n_tokens) {
  std::vector<std::string> texts;
  for (TokenId token = 0; token < tokenizer.n_tokens(); ++token) {
    const bool shown = !tokenizer.is_control(token) && !tokenizer.is_eog(token);
    texts.emplace_back(shown ? tokenizer.piece(token, false) : "");
  }
  texts.resize(std::max(texts.size(), n_tokens));
  std::vector<TokenId> ends = tokenizer.eog();
  ends.insert(ends.end(), more_ends.begin(), more_ends.end());
  return std::make_shared<const GrammarVocabulary>(std::move(texts), std::move(ends));
}

bool GrammarVocabulary::is_end(TokenId token) const {
  return std::binary_search(end_tokens_.begin(), end_tokens_.end(), token);
}

}  // namespace infer::grammar
