// Fuzz target for the tokenizers: any text with small vocabularies of every algorithm and every pre-tokenizer rule, and
// with vocabularies that are made from the input.
//
// Input: a byte of flags, a byte that selects a vocabulary or rule, then the data.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ggml-like/error.h"
#include "src/text/detokenizer.h"
#include "src/text/pre_tokenizer.h"
#include "src/text/tokenizer.h"
#include "src/text/tokenizer_algorithm.h"
#include "src/text/utf8.h"

namespace {

using namespace infer;

void require(bool condition) {
  if (!condition) std::abort();
}

void add(Vocabulary& v, std::string text, TokenType type = TokenType::kNormal, float score = 0) {
  v.tokens.push_back({std::move(text), score, type});
}

void add_byte_tokens(Vocabulary& v) {
  constexpr char kHex[] = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte) {
    add(v, std::string("<0x") + kHex[byte >> 4] + kHex[byte & 15] + ">", TokenType::kByte);
  }
}

void add_words(Vocabulary& v) {
  const std::string blank(kEscapedBlank);
  float score = -1;
  for (const char* word : {"a", "b", "ab", "aa", "aaaa", "the", "th", "he", "1", "12", "\xC3\xA9", "\xE6\xBC\xA2"}) {
    add(v, word, TokenType::kNormal, score);
    add(v, blank + word, TokenType::kNormal, score -= 0.5f);
  }
  add(v, blank, TokenType::kNormal, -9);
  add(v, blank + blank, TokenType::kNormal, -8);
  add(v, "a" + blank + "b", TokenType::kNormal, -3);
}

void add_specials(Vocabulary& v) {
  for (const char* text : {"<|im_end|>", "<|im", "</s>", "<mask>"}) add(v, text, TokenType::kControl);
  for (const char* text : {"[U]", "[U][U]", "\n\n", "\n\n\n", "im_end"}) add(v, text, TokenType::kUserDefined);
}

Vocabulary fixed_vocabulary(TokenizerModel model, bool strip) {
  Vocabulary v;
  v.model = model;
  v.general_name = strip ? "phi-3" : "";
  v.unk = 0;
  add(v, "<unk>", TokenType::kUnknown);
  add_specials(v);
  if (model == TokenizerModel::kBpe) {
    v.pre = "llama3";
    v.escape_whitespaces = false;
    for (int byte = 0; byte < 256; ++byte) {
      std::string text;
      append_utf8(byte_to_printable(static_cast<uint8_t>(byte)), text);
      add(v, text);
    }
    for (const auto& [left, right] :
         {std::pair("a", "a"), {"aa", "aa"}, {"t", "h"}, {"th", "e"}, {"\xC4\xA0", "the"}}) {
      v.merges.push_back(std::string(left) + " " + right);
      add(v, std::string(left) + right);
    }
  } else {
    if (model == TokenizerModel::kSentencePiece) add_byte_tokens(v);
    add_words(v);
  }
  return v;
}

constexpr TokenizerModel kModels[] = {TokenizerModel::kSentencePiece, TokenizerModel::kBpe, TokenizerModel::kWordPiece,
                                      TokenizerModel::kUnigram};

// `lossless`: a byte-level vocabulary with all bytes, so that decoding gives back the text.
void use(const Tokenizer& t, std::string_view text, uint8_t flags, bool lossless) {
  const bool parse_special = flags & 2, add_special = flags & 4;
  const std::vector<TokenId> ids = t.encode(text, add_special, parse_special);
  Detokenizer stream;
  std::string streamed;
  for (const TokenId id : ids) {
    require(id >= 0 && id < t.n_tokens());
    const std::string step = stream.add(t.piece(id, true));
    require(is_valid_utf8(step));
    streamed += step;
  }
  streamed += stream.flush();
  const std::string decoded = t.decode(ids, true);
  if (is_valid_utf8(decoded)) require(streamed == decoded);
  if (lossless) require(decoded == text);
}

void fuzz_text(uint8_t flags, uint8_t choice, std::string_view text) {
  static const std::vector<std::unique_ptr<Tokenizer>> tokenizers = [] {
    std::vector<std::unique_ptr<Tokenizer>> all;
    for (const TokenizerModel model : kModels) {
      for (const bool strip : {false, true}) all.push_back(std::make_unique<Tokenizer>(fixed_vocabulary(model, strip)));
    }
    return all;
  }();
  const size_t i = choice % tokenizers.size();
  use(*tokenizers[i], text, flags, kModels[i / 2] == TokenizerModel::kBpe && i % 2 == 0);
}

void fuzz_rule(uint8_t choice, std::string_view text) {
  static std::map<const PreTokenizerRule*, std::unique_ptr<PreTokenizer>> compiled;
  const auto table = pre_tokenizer_table();
  const PreTokenizerRule* rule = table[choice % table.size()].rule;
  auto& pre_tokenizer = compiled[rule];
  if (!pre_tokenizer) pre_tokenizer = std::make_unique<PreTokenizer>(*rule);
  size_t done = 0;
  for (const auto& [begin, end] : pre_tokenizer->split(text)) {
    require(begin == done && end > begin);
    done = end;
  }
  require(done == text.size());
}

// Reads numbers and strings from the front of the input.
struct Reader {
  std::string_view rest;

  uint8_t byte() {
    if (rest.empty()) return 0;
    const auto value = static_cast<uint8_t>(rest.front());
    rest.remove_prefix(1);
    return value;
  }
  std::string text(size_t n) {
    const std::string value(rest.substr(0, n));
    rest.remove_prefix(value.size());
    return value;
  }
};

void fuzz_vocabulary(uint8_t flags, uint8_t choice, std::string_view data) {
  Reader in{data};
  Vocabulary v;
  v.model = kModels[choice % 4];
  const auto table = pre_tokenizer_table();
  v.pre = std::string(table[in.byte() % table.size()].name);
  const uint8_t bits = in.byte();
  v.add_bos = bits & 1, v.add_eos = bits & 2, v.add_space_prefix = bits & 4, v.remove_extra_whitespaces = bits & 8;
  v.escape_whitespaces = bits & 16, v.ignore_merges = bits & 32, v.lowercase = bits & 64, v.strip_accents = bits & 128;
  for (TokenId* id : {&v.bos, &v.eos, &v.unk, &v.sep, &v.pad, &v.eot, &v.fim_pad}) {
    *id = static_cast<int8_t>(in.byte());
  }
  if (flags & 8) v.general_name = "phi3";
  if (flags & 16) add_byte_tokens(v);
  if (flags & 32) add_specials(v);
  for (size_t n = in.byte() % 64; n > 0; --n) {
    const uint8_t head = in.byte();
    add(v, in.text(head % 16), static_cast<TokenType>(1 + head / 16 % 6), static_cast<int8_t>(in.byte()));
  }
  for (size_t n = in.byte() % 32; n > 0; --n) v.merges.push_back(in.text(in.byte() % 8));
  if (flags & 64) {
    const std::string map = in.text(in.byte() * 4u);
    v.precompiled_charsmap.assign(map.begin(), map.end());
  }
  use(Tokenizer(std::move(v)), in.rest, flags, false);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  try {
    if (data[0] & 1) fuzz_vocabulary(data[0], data[1], rest);
    else if (data[0] & 128) fuzz_rule(data[1], rest);
    else fuzz_text(data[0], data[1], rest);
  } catch (const Error&) {
    // An error is fine; anything else is not.
  }
  return 0;
}
