// The algorithms behind Tokenizer: each turns a stretch of text without special tokens into ids. Immutable after
// construction, so encode() may be called from any number of threads. They keep references to the Vocabulary, the
// text index and each token's original type, which the Tokenizer owns.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "src/text/text_map.h"
#include "src/text/vocabulary.h"

namespace infer {

// U+2581, which stands for a blank in the tokens of SentencePiece, WordPiece and Unigram vocabularies.
inline constexpr std::string_view kEscapedBlank = "\xE2\x96\x81";

class TokenizerAlgorithm {
 public:
  virtual ~TokenizerAlgorithm() = default;
  // Appends to `out`. `at_boundary`: nothing or a special token comes before this text.
  // REQUIRES text shorter than 2^30 bytes.
  virtual void encode(std::string_view text, bool at_boundary, std::vector<TokenId>& out) const = 0;
};

// `index` maps each token's text to its id. Each throws Error(kInvalidFile) when the vocabulary lacks what it needs and
// Error(kUnsupported) when it asks for something unknown.
std::unique_ptr<TokenizerAlgorithm> make_sentencepiece_bpe(const Vocabulary& vocabulary, const TextMap& index);
std::unique_ptr<TokenizerAlgorithm> make_byte_pair(const Vocabulary& vocabulary, const TextMap& index);
std::unique_ptr<TokenizerAlgorithm> make_wordpiece(const Vocabulary& vocabulary, const TextMap& index);
std::unique_ptr<TokenizerAlgorithm> make_unigram(const Vocabulary& vocabulary, const TextMap& index);

// The id of "<0xXX>" for a byte, kNoToken when there is none.
TokenId find_byte_token(const TextMap& index, uint8_t byte);

// Byte-level BPE writes each byte as one printable character: itself where it is printable ASCII or Latin-1, else
// U+0100 and up in order.
uint32_t byte_to_printable(uint8_t byte);
// The bytes that a token of the printable alphabet stands for; characters outside it stay as they are.
std::string printable_to_bytes(std::string_view text);

// Bytes of the token texts and words that are looked up again and again in one text: word -> its ids in `out`.
class WordCache {
 public:
  // Appends the ids of `word` and returns true when it was seen before.
  bool replay(std::string_view word, std::vector<TokenId>& out) const {
    const int32_t i = index_.find(word);
    if (i == TextMap::kNone) return false;
    const Range range = ranges_[static_cast<size_t>(i)];
    const size_t end = out.size();
    out.resize(end + range.count);
    for (size_t k = 0; k < range.count; ++k) out[end + k] = out[range.begin + k];
    return true;
  }
  // `word` has just been encoded as out[begin, out.size()). Its bytes must outlive the cache.
  void remember(std::string_view word, size_t begin, const std::vector<TokenId>& out) {
    if (word.size() > kMaxWordBytes) return;
    if (index_.insert(word, static_cast<int32_t>(ranges_.size()))) ranges_.push_back({begin, out.size() - begin});
  }

 private:
  static constexpr size_t kMaxWordBytes = 64;  // longer words seldom come twice
  struct Range {
    size_t begin, count;
  };
  TextMap index_;
  std::vector<Range> ranges_;
};

}  // namespace infer
