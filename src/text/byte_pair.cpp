// Byte-pair encoding by merge rank. The pre-tokenizer splits text into words; within a word, the adjacent pair with the
// lowest rank is merged, leftmost first, until no pair is in the list of merges.
#include <algorithm>
#include <array>
#include <deque>
#include <string>

#include "ggml-like/error.h"
#include "src/text/pre_tokenizer.h"
#include "src/text/tokenizer_algorithm.h"
#include "src/text/utf8.h"

namespace infer {
namespace {

const PreTokenizerEntry& pre_tokenizer_or_throw(const std::string& name) {
  const PreTokenizerEntry* entry = find_pre_tokenizer(name);
  if (!entry) {
    throw Error(ErrorCode::kUnsupported,
                concat("[tokenizer] tokenizer.ggml.pre: pre-tokenizer '", name.substr(0, 100), "' is not supported"));
  }
  return *entry;
}

class BytePair final : public TokenizerAlgorithm {
 public:
  BytePair(const Vocabulary& vocabulary, const TextMap& index)
      : vocabulary_(vocabulary),
        index_(index),
        rule_(*pre_tokenizer_or_throw(vocabulary.pre).rule),
        pre_tokenizer_(rule_),
        n_tokens_(static_cast<uint32_t>(vocabulary.tokens.size())) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string printable;
      append_utf8(byte_to_printable(static_cast<uint8_t>(byte)), printable);
      const auto i = static_cast<size_t>(byte);
      byte_symbol_[i] = symbol_of(printable);
      const TokenId token =
          rule_.byte_encode ? index.find(printable) : find_byte_token(index, static_cast<uint8_t>(byte));
      byte_token_[i] = token != kNoToken ? token : vocabulary.unk;
    }
    merges_.reserve(vocabulary.merges.size());
    std::string joined;
    for (size_t rank = 0; rank < vocabulary.merges.size(); ++rank) {
      const std::string& merge = vocabulary.merges[rank];
      const size_t blank = merge.find(' ', 1);  // the left part is not empty; it may itself be a space
      if (blank == std::string::npos) continue;
      const std::string_view left = std::string_view(merge).substr(0, blank);
      const std::string_view right = std::string_view(merge).substr(blank + 1);
      if (right.empty()) continue;
      joined.assign(left).append(right);
      merges_.insert(symbol_of(left), symbol_of(right), {static_cast<uint32_t>(rank), symbol_of(joined)});
    }
  }

  void encode(std::string_view text, bool, std::vector<TokenId>& out) const override {
    std::string escaped;
    if (vocabulary_.escape_whitespaces) {
      for (const char c : text) {
        if (c == ' ') escaped += kEscapedBlank;
        else escaped += c;
      }
      text = escaped;
    }
    WordCache cache;
    Scratch scratch;
    for (const auto& [begin, end] : pre_tokenizer_.split(text)) {
      const std::string_view word = text.substr(begin, end - begin);
      if (cache.replay(word, out)) continue;
      const size_t first = out.size();
      encode_word(word, scratch, out);
      cache.remember(word, first, out);
    }
  }

 private:
  static constexpr uint32_t kUnknownSymbol = UINT32_MAX;

  // Symbols below n_tokens_ are tokens; the others are texts that occur only in merges.
  struct Symbol {
    int32_t previous, next;
    uint32_t id;
    uint32_t begin, length;  // bytes of the word; length 0 once merged into its left neighbour
  };
  struct Pair {
    uint32_t rank;
    int32_t left, right;
    uint32_t left_id, right_id;  // when queued; the pair is stale once either has changed
    uint32_t merged;
    // The heap's top is the pair with the lowest rank, then the leftmost.
    bool operator<(const Pair& other) const { return rank > other.rank || (rank == other.rank && left > other.left); }
  };
  struct Scratch {
    std::vector<Symbol> symbols;
    std::vector<Pair> heap;
    std::string printable;
  };

  uint32_t find_symbol(std::string_view text) const {
    const TokenId token = index_.find(text);
    if (token != kNoToken) return static_cast<uint32_t>(token);
    const int32_t extra = extra_index_.find(text);
    return extra == TextMap::kNone ? kUnknownSymbol : n_tokens_ + static_cast<uint32_t>(extra);
  }

  uint32_t symbol_of(std::string_view text) {
    const uint32_t known = find_symbol(text);
    if (known != kUnknownSymbol) return known;
    extra_.emplace_back(text);
    extra_index_.insert(extra_.back(), static_cast<int32_t>(extra_.size() - 1));
    return n_tokens_ + static_cast<uint32_t>(extra_.size() - 1);
  }

  TokenId whole_word_token(std::string_view word, Scratch& scratch) const {
    if (vocabulary_.ignore_merges) {
      if (!rule_.byte_encode) return index_.find(word);
      scratch.printable.clear();
      for (const char c : word) append_utf8(byte_to_printable(static_cast<uint8_t>(c)), scratch.printable);
      return index_.find(scratch.printable);
    }
    if (rule_.newline_words && word.find_first_not_of('\n') == std::string_view::npos) return index_.find(word);
    return kNoToken;
  }

  void queue_pair(int32_t left, int32_t right, Scratch& scratch) const {
    if (left < 0 || right < 0) return;
    const uint32_t a = scratch.symbols[static_cast<size_t>(left)].id,
                   b = scratch.symbols[static_cast<size_t>(right)].id;
    if (a == kUnknownSymbol || b == kUnknownSymbol) return;
    if (const MergeMap::Merge* merge = merges_.find(a, b)) {
      scratch.heap.push_back({merge->rank, left, right, a, b, merge->symbol});
    }
  }

  void encode_word(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const {
    if (const TokenId token = whole_word_token(word, scratch); token != kNoToken) {
      out.push_back(token);
      return;
    }
    auto& [symbols, heap, printable] = scratch;
    symbols.clear();
    heap.clear();
    for (size_t at = 0; at < word.size();) {
      const uint32_t length = rule_.byte_encode ? 1 : decode_utf8(word, at).length;
      const uint32_t id =
          rule_.byte_encode ? byte_symbol_[static_cast<uint8_t>(word[at])] : find_symbol(word.substr(at, length));
      const auto i = static_cast<int32_t>(symbols.size());
      at += length;
      symbols.push_back({i - 1, at < word.size() ? i + 1 : -1, id, static_cast<uint32_t>(at - length), length});
    }
    for (size_t i = 1; i < symbols.size(); ++i)
      queue_pair(static_cast<int32_t>(i) - 1, static_cast<int32_t>(i), scratch);
    std::make_heap(heap.begin(), heap.end());
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end());
      const Pair pair = heap.back();
      heap.pop_back();
      Symbol& left = symbols[static_cast<size_t>(pair.left)];
      Symbol& right = symbols[static_cast<size_t>(pair.right)];
      if (left.length == 0 || right.length == 0 || left.id != pair.left_id || right.id != pair.right_id) continue;
      left.id = pair.merged;
      left.length += right.length;
      right.length = 0;
      left.next = right.next;
      if (right.next >= 0) symbols[static_cast<size_t>(right.next)].previous = pair.left;
      size_t queued = heap.size();
      queue_pair(left.previous, pair.left, scratch);
      queue_pair(pair.left, left.next, scratch);
      while (queued < heap.size()) std::push_heap(heap.begin(), heap.begin() + static_cast<ptrdiff_t>(++queued));
    }
    for (int32_t i = symbols.empty() ? -1 : 0; i >= 0; i = symbols[static_cast<size_t>(i)].next) {
      const Symbol& symbol = symbols[static_cast<size_t>(i)];
      if (symbol.id < n_tokens_) out.push_back(static_cast<TokenId>(symbol.id));
      else append_bytes(word.substr(symbol.begin, symbol.length), out);
    }
  }

  // As in the vendors' tokenizers, a byte is dropped if neither its own token nor an unknown token exists.
  void append_bytes(std::string_view text, std::vector<TokenId>& out) const {
    for (const char c : text) {
      const TokenId token = byte_token_[static_cast<uint8_t>(c)];
      if (token != kNoToken) out.push_back(token);
    }
  }

  const Vocabulary& vocabulary_;
  const TextMap& index_;
  const PreTokenizerRule& rule_;
  PreTokenizer pre_tokenizer_;
  uint32_t n_tokens_;
  std::deque<std::string> extra_;  // texts of symbols n_tokens_ and up; a deque, since extra_index_ points into it
  TextMap extra_index_;
  MergeMap merges_;
  std::array<uint32_t, 256> byte_symbol_{};
  std::array<TokenId, 256> byte_token_{};
};

}  // namespace

std::unique_ptr<TokenizerAlgorithm> make_byte_pair(const Vocabulary& vocabulary, const TextMap& index) {
  return std::make_unique<BytePair>(vocabulary, index);
}

}  // namespace infer
