#include "src/text/tokenizer.h"

#include <algorithm>
#include <cmath>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "src/text/special_splitter.h"
#include "src/text/special_tokens.h"
#include "src/text/text_map.h"
#include "src/text/tokenizer_algorithm.h"

namespace infer {
namespace {

constexpr size_t kMaxTokens = size_t{1} << 26;
constexpr size_t kMaxTokenBytes = 16384;
constexpr size_t kMaxTextBytes = (size_t{1} << 30) - 1;

[[noreturn]] void invalid(const std::string& message) {
  throw Error(ErrorCode::kInvalidFile, "[tokenizer] " + message);
}

template <typename Subject, typename Expected, typename Found>
[[noreturn]] void invalid(const Subject& subject, const Expected& expected, const Found& found) {
  throw Error(ErrorCode::kInvalidFile, expected_found("tokenizer", subject, expected, found));
}

void check_id(const char* name, TokenId id, const Vocabulary& vocabulary) {
  if (id != kNoToken && (id < 0 || static_cast<size_t>(id) >= vocabulary.tokens.size())) {
    invalid(concat(name, " token"), concat("an id below ", vocabulary.tokens.size()), id);
  }
}

void check_vocabulary(Vocabulary& vocabulary) {
  Vocabulary& v = vocabulary;
  if (v.tokens.empty()) invalid("vocabulary", "at least one token", "none");
  if (v.tokens.size() > kMaxTokens || v.merges.size() > kMaxTokens) {
    invalid("vocabulary", concat("at most ", grouped(kMaxTokens), " tokens and as many merges"),
            concat(grouped(v.tokens.size()), " and ", grouped(v.merges.size())));
  }
  for (size_t id = 0; id < v.tokens.size(); ++id) {
    Vocabulary::Token& token = v.tokens[id];
    if (token.text.empty()) token.text = concat("[EMPTY_", id, "]");  // never occurs in a text, but is distinct
    if (token.text.size() > kMaxTokenBytes) {
      invalid(concat("token ", id), concat("at most ", grouped(kMaxTokenBytes), " bytes"), grouped(token.text.size()));
    }
    if (std::isnan(token.score)) invalid(concat("score of token ", id), "a number", "NaN");
  }
  const std::pair<const char*, TokenId> ids[] = {
      {"begin", v.bos},
      {"end", v.eos},
      {"end-of-turn", v.eot},
      {"end-of-message", v.eom},
      {"unknown", v.unk},
      {"separator", v.sep},
      {"padding", v.pad},
      {"classifier", v.cls},
      {"mask", v.mask},
      {"fim prefix", v.fim_pre},
      {"fim suffix", v.fim_suf},
      {"fim middle", v.fim_mid},
      {"fim pad", v.fim_pad},
      {"fim repo", v.fim_rep},
      {"fim separator", v.fim_sep},
      {"line feed", v.nl},
  };
  for (const auto& [name, id] : ids) check_id(name, id, v);
  for (const TokenId id : v.eog_listed) check_id("end-of-generation", id, v);
  for (const TokenId id : v.suppressed) check_id("suppressed", id, v);
  if (v.add_bos && v.bos == kNoToken) invalid("add_bos_token is true, but there is no bos_token_id");
  if (v.add_eos && v.eos == kNoToken) invalid("add_eos_token is true, but there is no eos_token_id");
  if (v.add_sep && v.sep == kNoToken) invalid("add_sep_token is true, but there is no seperator_token_id");
}

TextMap make_index(const Vocabulary& vocabulary) {
  TextMap index;
  index.reserve(vocabulary.tokens.size());
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string& text = vocabulary.tokens[id].text;
    if (!index.insert(text, static_cast<int32_t>(id))) {
      invalid(concat("token ", id), "a text of its own", concat("the text of token ", index.find(text)));
    }
  }
  return index;
}

std::unique_ptr<TokenizerAlgorithm> make_algorithm(const Vocabulary& vocabulary, const TextMap& index) {
  switch (vocabulary.model) {
    case TokenizerModel::kSentencePiece:
      return make_sentencepiece_bpe(vocabulary, index);
    case TokenizerModel::kBpe:
      return make_byte_pair(vocabulary, index);
    case TokenizerModel::kWordPiece:
      return make_wordpiece(vocabulary, index);
    case TokenizerModel::kUnigram:
      return make_unigram(vocabulary, index);
  }
  throw Error(ErrorCode::kUnsupported, expected_found("tokenizer", "a known tokenizer model", "another one"));
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

std::string unescape_blanks(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (text.substr(at, kEscapedBlank.size()) == kEscapedBlank) {
      out += ' ';
      at += kEscapedBlank.size();
    } else {
      out += text[at++];
    }
  }
  return out;
}

std::string piece_of(const Vocabulary& vocabulary, const std::string& text, uint8_t attributes) {
  if (attributes & (kAttrUnknown | kAttrControl | kAttrUserDefined)) return text;
  if (attributes & kAttrNormal) {
    if (vocabulary.model == TokenizerModel::kBpe && !vocabulary.escape_whitespaces) return printable_to_bytes(text);
    return unescape_blanks(text);
  }
  if (attributes & kAttrByte) {
    const int high = text.size() == 6 && text.starts_with("<0x") ? hex_digit(text[3]) : -1;
    const int low = high >= 0 ? hex_digit(text[4]) : -1;
    return low >= 0 ? std::string(1, static_cast<char>(high << 4 | low)) : text;
  }
  return {};
}

}  // namespace

struct Tokenizer::Impl {
  explicit Impl(Vocabulary given)
      : vocabulary((check_vocabulary(given), std::move(given))),
        index(make_index(vocabulary)),
        special(find_special_tokens(vocabulary, index)),
        splitter(vocabulary, special.attributes),
        algorithm(make_algorithm(vocabulary, index)) {
    piece_begin.reserve(vocabulary.tokens.size() + 1);
    piece_begin.push_back(0);
    for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
      pieces += piece_of(vocabulary, vocabulary.tokens[id].text, special.attributes[id]);
      max_piece_bytes = std::max(max_piece_bytes, pieces.size() - piece_begin.back());
      piece_begin.push_back(pieces.size());
    }
  }

  bool hidden(TokenId token) const {
    return special.attributes[static_cast<size_t>(token)] & (kAttrUnknown | kAttrControl);
  }

  Vocabulary vocabulary;
  TextMap index;
  SpecialTokens special;
  SpecialSplitter splitter;
  std::unique_ptr<TokenizerAlgorithm> algorithm;
  std::string pieces;               // of all tokens, with special tokens shown
  std::vector<size_t> piece_begin;  // [n_tokens + 1]
  size_t max_piece_bytes = 0;
};

Tokenizer::Tokenizer(Vocabulary vocabulary) : impl_(std::make_unique<Impl>(std::move(vocabulary))) {
  Vocabulary& v = impl_->vocabulary;
  if (v.nl != kNoToken) return;
  if (v.model == TokenizerModel::kWordPiece) {
    v.nl = v.pad;
  } else if (v.model == TokenizerModel::kSentencePiece) {
    v.nl = find_byte_token(impl_->index, '\n');
    if (v.nl == kNoToken) v.nl = find("\n");
    if (v.nl == kNoToken) v.nl = v.pad;
  } else {
    const std::vector<TokenId> tokens = encode("\n", false, false);
    v.nl = tokens.empty() ? v.pad : tokens.front();
  }
}

Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::vector<TokenId> Tokenizer::encode(std::string_view text, bool add_special, bool parse_special,
                                       std::span<const TextRange> plain) const {
  if (text.size() > kMaxTextBytes) {
    throw Error(ErrorCode::kInvalidArgument,
                expected_found("tokenizer", "a text below 1 GiB", concat(grouped(text.size()), " bytes")));
  }
  const Vocabulary& v = impl_->vocabulary;
  const bool word_piece = v.model == TokenizerModel::kWordPiece;  // always [CLS] ... [SEP]
  std::vector<TokenId> out;
  if (add_special && (v.add_bos || word_piece) && v.bos != kNoToken) out.push_back(v.bos);
  bool at_boundary = true;
  for (const SpecialSplitter::Part& part : impl_->splitter.split(text, parse_special, plain)) {
    if (part.token != kNoToken) out.push_back(part.token);
    else impl_->algorithm->encode(text.substr(part.begin, part.end - part.begin), at_boundary, out);
    at_boundary = part.token != kNoToken;
  }
  if (add_special && word_piece && v.sep != kNoToken) out.push_back(v.sep);
  if (add_special && v.add_eos && !word_piece) out.push_back(v.eos);
  return out;
}

std::string_view Tokenizer::piece(TokenId token, bool show_special) const {
  CHECK_INTERNAL(token >= 0 && token < n_tokens());
  if (!show_special && impl_->hidden(token)) return {};
  const auto id = static_cast<size_t>(token);
  const size_t begin = impl_->piece_begin[id];
  return std::string_view(impl_->pieces).substr(begin, impl_->piece_begin[id + 1] - begin);
}

std::string Tokenizer::decode(std::span<const TokenId> tokens, bool show_special) const {
  std::string out;
  for (const TokenId token : tokens) {
    if (token < 0 || token >= n_tokens()) {
      throw Error(ErrorCode::kInvalidArgument,
                  expected_found("tokenizer", concat("token ids below ", n_tokens()), token));
    }
    out += piece(token, show_special);
  }
  return out;
}

TokenId Tokenizer::n_tokens() const { return static_cast<TokenId>(impl_->vocabulary.tokens.size()); }

size_t Tokenizer::max_piece_bytes() const { return impl_->max_piece_bytes; }

TokenId Tokenizer::find(std::string_view text) const { return impl_->index.find(text); }

bool Tokenizer::is_eog(TokenId token) const {
  return std::binary_search(impl_->special.eog.begin(), impl_->special.eog.end(), token);
}

bool Tokenizer::is_control(TokenId token) const { return token >= 0 && token < n_tokens() && impl_->hidden(token); }

const std::vector<TokenId>& Tokenizer::eog() const { return impl_->special.eog; }

const Vocabulary& Tokenizer::vocabulary() const { return impl_->vocabulary; }

}  // namespace infer
