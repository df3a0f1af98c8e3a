#include "src/text/rerank_prompt.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace infer;

namespace {

using Ids = std::vector<TokenId>;

TokenId add_token(Vocabulary& v, const std::string& text, TokenType type = TokenType::kNormal) {
  v.tokens.push_back({text, 0, type});
  return static_cast<TokenId>(v.tokens.size() - 1);
}

// Tokens that all vocabularies here have, in this order.
enum : TokenId { kUnknown, kBegin, kEnd, kSeparator, kA, kB };

Vocabulary vocabulary(TokenizerModel model) {
  Vocabulary v;
  v.model = model;
  const bool word_piece = model == TokenizerModel::kWordPiece;
  v.unk = add_token(v, "[UNK]", TokenType::kUnknown);
  v.bos = add_token(v, "[CLS]", TokenType::kControl);
  v.eos = add_token(v, "[END]", TokenType::kControl);
  v.sep = add_token(v, "[SEP]", TokenType::kControl);
  add_token(v, word_piece ? "\xE2\x96\x81"
                            "a"
                          : "a");
  add_token(v, word_piece ? "\xE2\x96\x81"
                            "b"
                          : "b");
  v.add_space_prefix = false;
  return v;
}

Ids pair(const Vocabulary& v, const std::optional<std::string>& form = {}) {
  return encode_rerank_pair(Tokenizer(v), form, "a", "b");
}

}  // namespace

TEST_CASE("WordPiece ends query and document with a separator") {
  CHECK(pair(vocabulary(TokenizerModel::kWordPiece)) == Ids{kBegin, kA, kSeparator, kB, kSeparator});
}

TEST_CASE("other vocabularies add the tokens that their files ask for") {
  Vocabulary v = vocabulary(TokenizerModel::kUnigram);
  CHECK(pair(v) == Ids{kA, kB});
  v.add_bos = v.add_eos = true;
  CHECK(pair(v) == Ids{kBegin, kA, kEnd, kB, kEnd});
  v.add_sep = true;
  CHECK(pair(v) == Ids{kBegin, kA, kEnd, kSeparator, kB, kEnd});
}

TEST_CASE("the file's template is filled in, and only its own control tokens are parsed") {
  const Vocabulary v = vocabulary(TokenizerModel::kUnigram);
  CHECK(pair(v, "[CLS]{query}[SEP]{document}{query}") == Ids{kBegin, kA, kSeparator, kB, kA});
  const Ids hostile = encode_rerank_pair(Tokenizer(v), "[CLS]{query}[SEP]{document}", "{document}", "[SEP]");
  CHECK(std::count(hostile.begin(), hostile.end(), kSeparator) == 1);
  CHECK(std::count(hostile.begin(), hostile.end(), kB) == 0);
}
