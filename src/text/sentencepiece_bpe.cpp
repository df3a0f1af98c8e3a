// SentencePiece BPE: of all adjacent pairs whose joined text is a token, the one with the best score is merged,
// leftmost first, until none is left. Characters that are not tokens become byte tokens.
#include <algorithm>
#include <array>
#include <string>

#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "src/text/tokenizer_algorithm.h"
#include "src/text/utf8.h"

namespace infer {
namespace {

class SentencePieceBpe final : public TokenizerAlgorithm {
 public:
  SentencePieceBpe(const Vocabulary& vocabulary, const TextMap& index) : vocabulary_(vocabulary), index_(index) {
    for (int byte = 0; byte < 256; ++byte) {
      TokenId& token = byte_token_[static_cast<size_t>(byte)];
      const char text = static_cast<char>(byte);
      token = find_byte_token(index, static_cast<uint8_t>(byte));
      if (token == kNoToken) token = index.find({&text, 1});
      if (token == kNoToken) token = vocabulary.unk;
    }
    for (const Vocabulary::Token& token : vocabulary.tokens) {
      max_token_bytes_ = std::max(max_token_bytes_, token.text.size());
      for (size_t at = token.text.find(kEscapedBlank, 1); at != std::string::npos;
           at = token.text.find(kEscapedBlank, at + 1)) {
        before_blank_.push_back(static_cast<uint8_t>(token.text[at - 1]));
      }
    }
    std::sort(before_blank_.begin(), before_blank_.end());
    before_blank_.erase(std::unique(before_blank_.begin(), before_blank_.end()), before_blank_.end());
  }

  void encode(std::string_view text, bool at_boundary, std::vector<TokenId>& out) const override {
    std::string escaped;
    escaped.reserve(text.size() + text.size() / 2);
    if (vocabulary_.add_space_prefix && at_boundary) escaped += kEscapedBlank;
    for (const char c : text) {
      if (c == ' ') escaped += kEscapedBlank;
      else escaped += c;
    }
    WordCache cache;
    Scratch scratch;
    for (size_t begin = 0; begin < escaped.size();) {
      const size_t end = word_end(escaped, begin);
      const std::string_view word = std::string_view(escaped).substr(begin, end - begin);
      if (!cache.replay(word, out)) {
        const size_t first = out.size();
        encode_word(word, scratch, out);
        cache.remember(word, first, out);
      }
      begin = end;
    }
  }

 private:
  struct Symbol {
    int32_t previous, next;
    uint32_t begin, length;  // bytes of the word; 0 once merged into its left neighbour
  };
  struct Pair {
    float score;
    int32_t left, right;
    uint32_t length;  // of both when queued; the pair is stale once either has grown
    // The heap's top is the pair with the highest score, then the leftmost.
    bool operator<(const Pair& other) const {
      return score < other.score || (score == other.score && left > other.left);
    }
  };
  struct Scratch {
    std::vector<Symbol> symbols;
    std::vector<Pair> heap;
  };

  // No token contains a space after a byte outside `before_blank_`, so no merge crosses such a place and words can be
  // processed one by one.
  size_t word_end(std::string_view text, size_t begin) const {
    for (size_t at = text.find(kEscapedBlank, begin + 1); at != std::string_view::npos;
         at = text.find(kEscapedBlank, at + 1)) {
      if (!std::binary_search(before_blank_.begin(), before_blank_.end(), static_cast<uint8_t>(text[at - 1])))
        return at;
    }
    return text.size();
  }

  void queue_pair(std::string_view word, int32_t left, int32_t right, Scratch& scratch) const {
    if (left < 0 || right < 0) return;
    const Symbol& a = scratch.symbols[static_cast<size_t>(left)];
    const uint32_t length = a.length + scratch.symbols[static_cast<size_t>(right)].length;
    if (length > max_token_bytes_) return;
    const TokenId token = index_.find(word.substr(a.begin, length));
    if (token == kNoToken) return;
    scratch.heap.push_back({vocabulary_.tokens[static_cast<size_t>(token)].score, left, right, length});
  }

  void encode_word(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const {
    auto& [symbols, heap] = scratch;
    symbols.clear();
    heap.clear();
    for (size_t at = 0; at < word.size();) {
      const uint32_t length = decode_utf8(word, at).length;
      const auto i = static_cast<int32_t>(symbols.size());
      at += length;
      symbols.push_back({i - 1, at < word.size() ? i + 1 : -1, static_cast<uint32_t>(at - length), length});
    }
    for (size_t i = 1; i < symbols.size(); ++i) {
      queue_pair(word, static_cast<int32_t>(i) - 1, static_cast<int32_t>(i), scratch);
    }
    std::make_heap(heap.begin(), heap.end());
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end());
      const Pair pair = heap.back();
      heap.pop_back();
      Symbol& left = symbols[static_cast<size_t>(pair.left)];
      Symbol& right = symbols[static_cast<size_t>(pair.right)];
      if (left.length == 0 || right.length == 0 || left.length + right.length != pair.length) continue;
      left.length += right.length;
      right.length = 0;
      left.next = right.next;
      if (right.next >= 0) symbols[static_cast<size_t>(right.next)].previous = pair.left;
      size_t queued = heap.size();
      queue_pair(word, left.previous, pair.left, scratch);
      queue_pair(word, pair.left, left.next, scratch);
      while (queued < heap.size()) std::push_heap(heap.begin(), heap.begin() + static_cast<ptrdiff_t>(++queued));
    }
    for (int32_t i = symbols.empty() ? -1 : 0; i >= 0; i = symbols[static_cast<size_t>(i)].next) {
      const Symbol& symbol = symbols[static_cast<size_t>(i)];
      const std::string_view text = word.substr(symbol.begin, symbol.length);
      const TokenId token = index_.find(text);
      if (token != kNoToken) out.push_back(token);
      else append_bytes(text, out);
    }
  }

  void append_bytes(std::string_view text, std::vector<TokenId>& out) const {
    for (const char c : text) {
      const TokenId token = byte_token_[static_cast<uint8_t>(c)];
      if (token == kNoToken) {
        throw Error(ErrorCode::kUnsupported,
                    expected_found("tokenizer", concat("byte ", static_cast<int>(static_cast<uint8_t>(c))),
                                   "a token for it or an unknown token", "neither in the vocabulary"));
      }
      out.push_back(token);
    }
  }

  const Vocabulary& vocabulary_;
  const TextMap& index_;
  std::array<TokenId, 256> byte_token_{};
  std::vector<uint8_t> before_blank_;  // sorted: last bytes of the characters that precede a space inside some token
  size_t max_token_bytes_ = 0;
};

}  // namespace

std::unique_ptr<TokenizerAlgorithm> make_sentencepiece_bpe(const Vocabulary& vocabulary, const TextMap& index) {
  return std::make_unique<SentencePieceBpe>(vocabulary, index);
}

}  // namespace infer
