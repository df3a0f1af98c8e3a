// WordPiece as BERT uses it: normalizes the text, splits it into words at spaces and around punctuation and ideographs,
// then repeatedly takes the longest token. A word that tokens cannot cover becomes one unknown token. Tokens that start
// a word begin with U+2581; tokens inside a word have no prefix.
#include <utf8proc.h>

#include <string>

#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "src/text/byte_trie.h"
#include "src/text/tokenizer_algorithm.h"
#include "src/text/utf8.h"

namespace infer {
namespace {

bool is_white_space(uint32_t code, utf8proc_category_t category) {
  return (code >= '\t' && code <= '\r') || code == 0x85 || category == UTF8PROC_CATEGORY_ZS ||
         category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

bool is_control(utf8proc_category_t category) {
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_CO ||
         category == UTF8PROC_CATEGORY_CS;
}

bool is_punctuation(uint32_t code, utf8proc_category_t category) {
  const bool ascii_symbol = code < 0x7F && category >= UTF8PROC_CATEGORY_SM && category <= UTF8PROC_CATEGORY_SO;
  return ascii_symbol || (category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO);
}

bool is_ideograph(uint32_t code) {
  return (code >= 0x4E00 && code <= 0x9FFF) || (code >= 0x3400 && code <= 0x4DBF) ||
         (code >= 0x20000 && code <= 0x2A6DF) || (code >= 0x2A700 && code <= 0x2B73F) ||
         (code >= 0x2B740 && code <= 0x2B81F) ||
         (code >= 0x2B920 && code <= 0x2CEAF) ||  // starts at 2B920 in the vendor's tokenizer, not at the block's 2B820
         (code >= 0xF900 && code <= 0xFAFF) || (code >= 0x2F800 && code <= 0x2FA1F);
}

class WordPiece final : public TokenizerAlgorithm {
 public:
  explicit WordPiece(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
    if (vocabulary.unk == kNoToken) {
      throw Error(ErrorCode::kInvalidFile,
                  expected_found("tokenizer", "an unknown token in a WordPiece vocabulary", "none"));
    }
    ByteTrie::Entries entries;
    for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
      entries.emplace_back(vocabulary.tokens[id].text, static_cast<int32_t>(id));
    }
    trie_ = ByteTrie(std::move(entries));
  }

  void encode(std::string_view text, bool, std::vector<TokenId>& out) const override {
    std::string word(kEscapedBlank);
    const auto finish = [&] {
      if (word.size() == kEscapedBlank.size()) return;
      encode_word(word, out);
      word.resize(kEscapedBlank.size());
    };
    for (size_t at = 0; at < text.size();) {
      const Utf8Char c = decode_utf8(text, at);
      at += c.length;
      const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c.code));
      if (is_white_space(c.code, category)) {
        finish();
        continue;
      }
      if (c.code == 0 || c.code == kReplacementCharacter || is_control(category)) continue;
      utf8proc_int32_t parts[kMaxDecomposition] = {static_cast<utf8proc_int32_t>(c.code)};
      utf8proc_ssize_t n_parts = 1;
      if (vocabulary_.strip_accents && c.code >= 0x80) {
        int last_class = 0;
        n_parts = utf8proc_decompose_char(parts[0], parts, kMaxDecomposition, UTF8PROC_DECOMPOSE, &last_class);
        if (n_parts < 0 || n_parts > kMaxDecomposition) n_parts = 1, parts[0] = static_cast<utf8proc_int32_t>(c.code);
      }
      for (utf8proc_ssize_t i = 0; i < n_parts; ++i) {
        const auto part_category = utf8proc_category(parts[i]);
        if (vocabulary_.strip_accents && part_category == UTF8PROC_CATEGORY_MN) continue;
        const auto code = static_cast<uint32_t>(parts[i]);
        const bool alone = is_punctuation(code, part_category) || is_ideograph(code);
        if (alone) finish();
        append_utf8(static_cast<uint32_t>(vocabulary_.lowercase ? utf8proc_tolower(parts[i]) : parts[i]), word);
        if (alone) finish();
      }
    }
    finish();
  }

 private:
  static constexpr utf8proc_ssize_t kMaxDecomposition = 32;  // the longest canonical one has 4 characters

  void encode_word(std::string_view word, std::vector<TokenId>& out) const {
    const size_t begin = out.size();
    for (size_t at = 0; at < word.size();) {
      const ByteTrie::Match match = trie_.longest_match(word, at);
      if (match.length == 0) {
        out.resize(begin);
        out.push_back(vocabulary_.unk);
        return;
      }
      out.push_back(match.value);
      at += match.length;
    }
  }

  const Vocabulary& vocabulary_;
  ByteTrie trie_;
};

}  // namespace

std::unique_ptr<TokenizerAlgorithm> make_wordpiece(const Vocabulary& vocabulary, const TextMap&) {
  return std::make_unique<WordPiece>(vocabulary);
}

}  // namespace infer
