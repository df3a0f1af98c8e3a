// The algorithms behind Tokenizer: each converts a stretch of text without special tokens to ids. Immutable after
// construction, so encode() may be called from any number of threads. They keep references to the Vocabulary, the text
// index and each token's original type, which the Tokenizer owns.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "src/text/text_map.h"
#include "src/text/vocabulary.h"

namespace infer {

// U+2581, which represents a space in the tokens of SentencePiece, WordPiece and Unigram vocabularies.
inline constexpr std::string_view kEscapedBlank = "\xE2\x96\x81";

class TokenizerAlgorithm {
 public:
  virtual ~TokenizerAlgorithm() = default;
  // Appends to `out`. `at_boundary`: this text is at the start or follows a special token.
  // REQUIRES: text is shorter than 2^30 bytes.
  virtual void encode(std::string_view text, bool at_boundary, std::vector<TokenId>& out) const = 0;
};

// `index` maps each token's text to its id. Each throws Error(kInvalidFile) if the vocabulary lacks something it needs,
// and Error(kUnsupported) if it asks for something unknown.
std::unique_ptr<TokenizerAlgorithm> make_sentencepiece_bpe(const Vocabulary& vocabulary, const TextMap& index);
std::unique_ptr<TokenizerAlgorithm> make_byte_pair(const Vocabulary& vocabulary, const TextMap& index);
std::unique_ptr<TokenizerAlgorithm> make_wordpiece(const Vocabulary& vocabulary, const TextMap& index);
std::unique_ptr<TokenizerAlgorithm> make_unigram(const Vocabulary& vocabulary, const TextMap& index);

// The id of "<0xXX>" for a byte; kNoToken if there is none.
TokenId find_byte_token(const TextMap& index, uint8_t byte);

// Byte-level BPE writes each byte as one printable character: itself if it is printable ASCII or Latin-1, otherwise
// U+0100 and up, in order.
uint32_t byte_to_printable(uint8_t byte);
// The bytes that a token in the printable alphabet stands for; characters outside it are kept.
std::string printable_to_bytes(std::string_view text);

// Caches the ids of words that recur within one text: word -> range of ids in `out`.
class WordCache {
 public:
  // If `word` was seen before, appends its ids and returns true.
  bool replay(std::string_view word, std::vector<TokenId>& out) const {
    const int32_t i = index_.find(word);
    if (i == TextMap::kNone) return false;
    const Range range = ranges_[static_cast<size_t>(i)];
    const size_t end = out.size();
    out.resize(end + range.count);
    for (size_t k = 0; k < range.count; ++k) out[end + k] = out[range.begin + k];
    return true;
  }
  // `word` was just encoded as out[begin, out.size()). Its bytes must outlive the cache.
  void remember(std::string_view word, size_t begin, const std::vector<TokenId>& out) {
    if (word.size() > kMaxWordBytes) return;
    if (index_.insert(word, static_cast<int32_t>(ranges_.size()))) ranges_.push_back({begin, out.size() - begin});
  }

 private:
  static constexpr size_t kMaxWordBytes = 64;  // longer words rarely recur
  struct Range {
    size_t begin, count;
  };
  TextMap index_;
  std::vector<Range> ranges_;
};

}  // namespace infer
