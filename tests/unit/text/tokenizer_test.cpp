// The rules of each tokenizer algorithm on vocabularies small enough to follow by hand.
#include "src/text/tokenizer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ggml-like/error.h"
#include "src/text/byte_trie.h"
#include "src/text/prompt_tokens.h"
#include "src/text/text_map.h"
#include "src/text/tokenizer_algorithm.h"
#include "src/text/utf8.h"

namespace infer {
namespace {

using Ids = std::vector<TokenId>;
constexpr const char* kBlank = "\xE2\x96\x81";

TokenId add(Vocabulary& v, const std::string& text, TokenType type = TokenType::kNormal, float score = 0) {
  v.tokens.push_back({text, score, type});
  return static_cast<TokenId>(v.tokens.size() - 1);
}

void add_byte_tokens(Vocabulary& v) {
  constexpr char kHex[] = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte) {
    add(v, std::string("<0x") + kHex[byte >> 4] + kHex[byte & 15] + ">", TokenType::kByte);
  }
}

// <unk> <s> </s>, 256 byte tokens from 3, then words.
Vocabulary sentencepiece() {
  Vocabulary v;
  v.model = TokenizerModel::kSentencePiece;
  v.unk = add(v, "<unk>", TokenType::kUnknown);
  v.bos = add(v, "<s>", TokenType::kControl);
  v.eos = add(v, "</s>", TokenType::kControl);
  v.add_bos = true;
  add_byte_tokens(v);
  return v;
}

// The printable alphabet as tokens 0 to 255 in the order of the bytes, then the results of merges.
Vocabulary byte_level(std::initializer_list<std::pair<const char*, const char*>> merges,
                      const std::string& pre = "gpt-2") {
  Vocabulary v;
  v.model = TokenizerModel::kBpe;
  v.pre = pre;
  v.escape_whitespaces = false;
  for (int byte = 0; byte < 256; ++byte) {
    std::string text;
    append_utf8(byte_to_printable(static_cast<uint8_t>(byte)), text);
    add(v, text);
  }
  for (const auto& [left, right] : merges) {
    v.merges.push_back(std::string(left) + " " + right);
    add(v, std::string(left) + right);
  }
  return v;
}

Vocabulary wordpiece() {
  Vocabulary v;
  v.model = TokenizerModel::kWordPiece;
  v.unk = add(v, "[UNK]", TokenType::kUnknown);
  v.bos = add(v, "[CLS]", TokenType::kControl);
  v.sep = add(v, "[SEP]", TokenType::kControl);
  for (const char* word : {"hello", "wor", "e", "!", "\xE6\xBC\xA2", "a"}) add(v, std::string(kBlank) + word);
  add(v, "ld");
  return v;
}

Vocabulary unigram() {
  Vocabulary v;
  v.model = TokenizerModel::kUnigram;
  v.add_space_prefix = true;
  v.eos = add(v, "</s>", TokenType::kControl);
  v.unk = add(v, "<unk>", TokenType::kUnknown);
  add(v, kBlank, TokenType::kNormal, -2);
  add(v, "a", TokenType::kNormal, -3);
  add(v, "b", TokenType::kNormal, -3);
  add(v, "ab", TokenType::kNormal, -4);
  add(v, std::string(kBlank) + "ab", TokenType::kNormal, -5);
  add(v, "[X]", TokenType::kUserDefined);
  return v;
}

std::string error_of(Vocabulary v, ErrorCode code) {
  try {
    Tokenizer t(std::move(v));
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "no error";
}

std::string repeat(const std::string& unit, size_t bytes) {
  std::string out;
  while (out.size() < bytes) out += unit;
  return out;
}

}  // namespace

TEST_CASE("control tokens are plain text where the text is not trusted") {
  Vocabulary v = byte_level({{"a", "b"}, {"b", "c"}});
  const TokenId control = add(v, "<|x|>", TokenType::kControl), shown = add(v, "<|start|>", TokenType::kControl);
  const TokenId tool = add(v, "<tool>", TokenType::kUserDefined), think = add(v, "<think>", TokenType::kControl);
  const TokenId longer = add(v, "<|x|><|x|>", TokenType::kControl);
  const Tokenizer t(v);
  const auto encode = [&](const std::string& text, std::vector<TextRange> plain) {
    return t.encode(text, false, true, plain);
  };
  const Ids written = t.encode("<|x|>", false, false);
  CHECK(written.size() == 5);
  CHECK(encode("<|x|>", {}) == Ids{control});
  CHECK(encode("<|x|>", {{0, 5}}) == written);
  CHECK(encode("<|x|>", {{4, 5}}) == written);  // one byte of the caller's text is enough
  CHECK(encode("<|x|>", {{0, 1}}) == written);
  CHECK(encode("<|x|>a", {{5, 6}}) == encode("<|x|>a", {}));
  CHECK(encode("a<|x|>", {{0, 1}}) == encode("a<|x|>", {}));
  // A shorter token is used if a longer one would reach into the caller's text.
  CHECK(encode("<|x|><|x|>", {}) == Ids{longer});
  Ids both = {control};
  both.insert(both.end(), written.begin(), written.end());
  CHECK(encode("<|x|><|x|>", {{5, 10}}) == both);
  // Tokens that answers show as text become the same tokens again; tokens that frame messages do not.
  CHECK(encode("<tool><think>", {{0, 13}}) == Ids{tool, think});
  CHECK(t.encode("<|start|>", false, false) == Ids{shown});
  CHECK(encode("<|start|>", {{0, 9}}).size() == 9);
  // Words of a text without control tokens are split as if there were no ranges.
  CHECK(encode("xabc<|x|>ab c", {{1, 2}, {3, 4}, {10, 12}}) == encode("xabc<|x|>ab c", {}));
}

TEST_CASE("a prompt has one BOS") {
  Vocabulary v = sentencepiece();
  add(v, kBlank, TokenType::kNormal, -9);
  const TokenId a = add(v, "a", TokenType::kNormal, -9),
                word = add(v, std::string(kBlank) + "a", TokenType::kNormal, -1);
  const Tokenizer t(v);
  const TokenId bos = t.vocabulary().bos;
  CHECK(encode_plain_prompt(t, "a") == Ids{bos, word});
  CHECK(encode_plain_prompt(t, "<s>a").front() == bos);
  CHECK(encode_plain_prompt(t, "<s>a") == encode_rendered_prompt(t, {"<s>a", {}}));
  CHECK(encode_plain_prompt(t, "<s>") == Ids{bos});
  CHECK(encode_plain_prompt(t, "") == Ids{bos});
  CHECK(encode_plain_prompt(t, "<s><s>a").size() == encode_plain_prompt(t, "<s>a").size() + 1);
  CHECK(encode_rendered_prompt(t, {"a", {{0, 1}}}) == Ids{bos, word});
  // BOS in the caller's text is plain text, and the prompt still has its own BOS.
  const Ids written = encode_rendered_prompt(t, {"<s>a", {{0, 3}}});
  CHECK(written.size() > 3);
  CHECK(std::count(written.begin(), written.end(), bos) == 1);
  Vocabulary none = sentencepiece();
  none.add_bos = false;
  add(none, kBlank, TokenType::kNormal, -9);
  CHECK(encode_plain_prompt(Tokenizer(none), "<s>") == Ids{bos});
  CHECK(a != word);
}

TEST_CASE("sentencepiece joins the best pair first, and the leftmost among equals") {
  Vocabulary v = sentencepiece();
  const TokenId blank = add(v, kBlank, TokenType::kNormal, -9), a = add(v, "a", TokenType::kNormal, -9);
  const TokenId b = add(v, "b", TokenType::kNormal, -9), ab = add(v, "ab", TokenType::kNormal, -2);
  const TokenId ba = add(v, "ba", TokenType::kNormal, -1), aa = add(v, "aa", TokenType::kNormal, -3);
  const Tokenizer t(v);
  CHECK(t.encode("aba", false, false) == Ids{blank, a, ba});
  CHECK(t.encode("aaa", true, false) == Ids{t.vocabulary().bos, blank, aa, a});
  CHECK(t.encode("ab b", false, false) == Ids{blank, ab, blank, b});
  CHECK(t.encode("", true, false) == Ids{t.vocabulary().bos});
  CHECK(t.encode("", false, false).empty());
}

TEST_CASE("sentencepiece falls back to bytes") {
  Vocabulary v = sentencepiece();
  const TokenId blank = add(v, kBlank);
  const Tokenizer t(v);
  CHECK(t.encode("\xC3\xA9", false, false) == Ids{blank, 3 + 0xC3, 3 + 0xA9});
  CHECK(t.encode("\xFF\xC3", false, false) == Ids{blank, 3 + 0xFF, 3 + 0xC3});
  CHECK(t.vocabulary().nl == 3 + '\n');
  CHECK(t.piece(3 + 0xC3, true) == "\xC3");
  CHECK(t.piece(blank, false) == " ");
}

TEST_CASE("sentencepiece without byte tokens uses the unknown token, or refuses the text") {
  Vocabulary v;
  v.model = TokenizerModel::kSentencePiece;
  add(v, "a");
  CHECK_THROWS_AS(Tokenizer(v).encode("b", false, false), Error);
  v.unk = add(v, "<unk>", TokenType::kUnknown);
  v.add_space_prefix = false;
  CHECK(Tokenizer(v).encode("ab", false, false) == Ids{0, 1});
}

TEST_CASE("sentencepiece joins across a blank where a token does") {
  Vocabulary v = sentencepiece();
  v.add_space_prefix = false;
  const TokenId blank = add(v, kBlank, TokenType::kNormal, -9), a = add(v, "a", TokenType::kNormal, -9);
  const TokenId both = add(v, std::string("a") + kBlank, TokenType::kNormal, -1);
  const Tokenizer t(v);
  CHECK(t.encode("a a", false, false) == Ids{both, a});
  CHECK(t.encode("  a", false, false) == Ids{blank, blank, a});
}

TEST_CASE("a blank goes before the text and after each special token") {
  Vocabulary v = sentencepiece();
  const TokenId blank = add(v, kBlank), x = add(v, "x"), user = add(v, "[U]", TokenType::kUserDefined);
  const Tokenizer t(v);
  CHECK(t.encode("x[U]x", false, false) == Ids{blank, x, user, blank, x});
  CHECK(t.encode("</s>x", false, true) == Ids{t.vocabulary().eos, blank, x});
  CHECK(t.encode("</s>", false, false).size() == 5);  // blank and four byte tokens: not parsed
}

TEST_CASE("byte-level merges go by rank, then from the left") {
  const Tokenizer t(byte_level({{"a", "b"}, {"b", "c"}, {"ab", "c"}, {"a", "a"}}));
  CHECK(t.encode("abc", false, false) == Ids{258});
  CHECK(t.encode("bcab", false, false) == Ids{257, 256});
  CHECK(t.encode("aaa", false, false) == Ids{259, 'a'});
  CHECK(t.encode("a b", false, false) == Ids{'a', ' ', 'b'});
  CHECK(t.encode("", true, true).empty());
}

TEST_CASE("merges with unknown tokens are ignored") {
  Vocabulary v = byte_level({{"a", "b"}});
  v.merges.insert(v.merges.begin(), {"x y", "no-blank", "", " ", "q ", "xy z"});
  const Tokenizer t(v);
  CHECK(t.encode("ab", false, false) == Ids{256});
  CHECK(t.encode("xyz", false, false) == Ids{'x', 'y', 'z'});  // "xy" and "xyz" are not tokens: bytes again
}

TEST_CASE("ignore_merges keeps a whole word that is a token") {
  Vocabulary v = byte_level({{"a", "b"}});
  const TokenId abc = add(v, "abc");
  CHECK(Tokenizer(v).encode("abc", false, false) == Ids{256, 'c'});
  v.ignore_merges = true;
  CHECK(Tokenizer(v).encode("abc", false, false) == Ids{abc});
}

TEST_CASE("byte-level text decodes to the original, well-formed or not") {
  const Tokenizer t(byte_level({{"a", "b"}, {"\xC4\xA0", "a"}}, "llama3"));
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  for (const std::string& text :
       {all, std::string("ab \xE6\xBC\xA2\xE5 a\xF0\x9F\x98 b\xED\xA0\x80 \xC0\x80"), std::string(3, '\0')}) {
    CHECK(t.decode(t.encode(text, false, false), true) == text);
  }
}

TEST_CASE("blanks and bytes of a character-level BPE") {
  Vocabulary v;
  v.model = TokenizerModel::kBpe;
  v.pre = "gemma4";
  v.escape_whitespaces = true;
  add_byte_tokens(v);
  const TokenId blank = add(v, kBlank), a = add(v, "a"), two = add(v, "\n\n");
  const TokenId blank_a = add(v, std::string(kBlank) + "a");
  v.merges = {std::string(kBlank) + " a"};
  const Tokenizer t(v);
  CHECK(t.encode("a a ", false, false) == Ids{a, blank_a, blank});
  CHECK(t.encode("\n\na\n", false, false) == Ids{two, a, '\n'});
  CHECK(t.encode("\xC3\xA9", false, false) == Ids{0xC3, 0xA9});
  CHECK(t.decode(t.encode("a \xC3\xA9", false, false), false) == "a \xC3\xA9");
}

TEST_CASE("wordpiece normalizes and uses the longest token") {
  const Tokenizer t(wordpiece());
  const TokenId hello = 3, wor = 4, e = 5, bang = 6, han = 7, ld = 9;
  CHECK(t.encode("Hello  WORLD!", true, false) == Ids{1, hello, wor, ld, bang, 2});
  CHECK(t.encode("\xC3\x89 \x65\xCC\x81", false, false) == Ids{e, e});   // precomposed and combining accents
  CHECK(t.encode("e\xE6\xBC\xA2\x65", false, false) == Ids{e, han, e});  // an ideograph stands alone
  CHECK(t.encode("worx hello", false, false) == Ids{0, hello});          // one unknown for the whole word
  CHECK(t.encode("he\xC2\xADllo\xFF", false, false) ==
        Ids{hello});  // format characters and ill-formed bytes are dropped
  CHECK(t.encode("\xE3\x80\x80", false, false).empty());
  Vocabulary cased = wordpiece();
  cased.lowercase = cased.strip_accents = false;
  CHECK(Tokenizer(cased).encode("Hello hello", false, false) == Ids{0, hello});
}

TEST_CASE("unigram chooses the best sum of scores") {
  const Tokenizer t(unigram());
  const TokenId unk = 1, a = 3, ab = 5, blank_ab = 6, user = 7;
  CHECK(t.encode("abab", false, false) == Ids{blank_ab, ab});
  CHECK(t.encode("ab ab", false, false) == Ids{blank_ab, blank_ab});
  CHECK(t.encode("abzza", false, false) == Ids{blank_ab, unk, a});  // neighbouring unknown characters become one token
  CHECK(t.encode("ab[X]ab", false, false) == Ids{blank_ab, user, blank_ab});
  CHECK(t.encode("ab\xFF\xFF", false, false) == Ids{blank_ab, unk});
  CHECK(t.encode("", false, false).empty());
}

TEST_CASE("unigram merges blanks on request") {
  Vocabulary v = unigram();
  v.remove_extra_whitespaces = true;
  CHECK(Tokenizer(v).encode("  ab   ab  ", false, false) == Ids{6, 6});
}

TEST_CASE("unigram applies the compiled character map") {
  // One entry: 'A' becomes 'a'. Node 0 has its children at base 128; the child for 'A' (0x41) is node 128 ^ 0x41 and
  // holds its value at node (128 ^ 0x41) ^ base, with base 1.
  std::vector<uint32_t> nodes(256, 0);
  const uint32_t child = 128 ^ 0x41;
  nodes[0] = 128u << 10;
  nodes[child] = 1u << 10 | 1u << 8 | 0x41;
  nodes[child ^ 1] = 1u << 31 | 2;  // replacement at offset 2
  const std::string strings("x\0a\0", 4);
  std::vector<uint8_t> map(4 + nodes.size() * 4);
  const uint32_t size = static_cast<uint32_t>(nodes.size() * 4);
  for (int i = 0; i < 4; ++i) map[static_cast<size_t>(i)] = static_cast<uint8_t>(size >> 8 * i);
  for (size_t n = 0; n < nodes.size(); ++n) {
    for (size_t i = 0; i < 4; ++i) map[4 + n * 4 + i] = static_cast<uint8_t>(nodes[n] >> 8 * i);
  }
  map.insert(map.end(), strings.begin(), strings.end());
  Vocabulary v = unigram();
  v.precompiled_charsmap = map;
  CHECK(Tokenizer(v).encode("Ab", false, false) == Ids{6});
  v.precompiled_charsmap.pop_back();  // the strings no longer end in NUL
  CHECK(error_of(v, ErrorCode::kInvalidFile).find("charsmap") != std::string::npos);
  v.precompiled_charsmap = {0, 0, 0, 0, 0};  // an empty table maps nothing
  CHECK(Tokenizer(v).encode("ab", false, false) == Ids{6});
  v.precompiled_charsmap = {0xFF, 0xFF, 0xFF, 0xFF, 0};
  CHECK(error_of(v, ErrorCode::kInvalidFile).find("charsmap") != std::string::npos);
}

TEST_CASE("special tokens: the longest is found first, control tokens only when parsed") {
  Vocabulary v = byte_level({});
  const TokenId ab = add(v, "<ab>", TokenType::kControl), inner = add(v, "ab", TokenType::kUserDefined);
  const TokenId b = add(v, "b>", TokenType::kUserDefined);
  const Tokenizer t(v);
  CHECK(t.encode("<ab>", false, true) == Ids{ab});
  CHECK(t.encode("<ab>", false, false) == Ids{'<', inner, '>'});  // the leftmost among equal lengths
  CHECK(t.encode("b>ab", false, false) == Ids{b, inner});
  CHECK(t.piece(ab, false).empty());
  CHECK(t.piece(ab, true) == "<ab>");
  CHECK(t.is_control(ab));
  CHECK_FALSE(t.is_control(inner));
}

TEST_CASE("white space around special tokens depends on the model's name") {
  Vocabulary v = byte_level({});
  const TokenId user = add(v, "<|user|>", TokenType::kControl);
  CHECK(Tokenizer(v).encode("<|user|> \nx", false, true) == Ids{user, ' ', '\n', 'x'});
  v.general_name = "Phi-3 mini";
  CHECK(Tokenizer(v).encode("<|user|> \nx", false, true) == Ids{user, 'x'});
  Vocabulary w = byte_level({});
  const TokenId mask = add(w, "[MASK]", TokenType::kControl);
  w.general_name = "modern-bert";
  CHECK(Tokenizer(w).encode("x  [MASK] x", false, true) == Ids{'x', mask, ' ', 'x'});
}

TEST_CASE("tokens that end generation are recognised by their texts") {
  Vocabulary v = byte_level({});
  v.eos = add(v, "<|endoftext|>", TokenType::kControl);
  const TokenId end = add(v, "<|im_end|>");  // declared normal
  const TokenId pad = add(v, "<|fim_pad|>", TokenType::kControl);
  const Tokenizer t(v);
  CHECK(t.eog() == Ids{v.eos, end, pad});
  CHECK(t.is_eog(end));
  CHECK_FALSE(t.is_eog('a'));
  CHECK_FALSE(t.is_eog(kNoToken));
  CHECK(t.is_control(end));
  CHECK(t.vocabulary().eot == end);
  CHECK(t.vocabulary().fim_pad == pad);
}

TEST_CASE("<|end|> does not end generation if there are <|call|> and <|return|>") {
  Vocabulary v = byte_level({});
  const TokenId end = add(v, "<|end|>", TokenType::kControl), call = add(v, "<|call|>", TokenType::kControl);
  const TokenId back = add(v, "<|return|>", TokenType::kControl), channel = add(v, "<|channel|>", TokenType::kControl);
  const Tokenizer t(v);
  CHECK(t.eog() == Ids{call, back});
  CHECK(t.vocabulary().eot == end);
  CHECK(t.piece(end, false) == "<|end|>");
  CHECK(t.piece(channel, false) == "<|channel|>");
}

TEST_CASE("inconsistent vocabularies are refused") {
  CHECK(error_of(Vocabulary(), ErrorCode::kInvalidFile).find("at least one token") != std::string::npos);
  Vocabulary v = byte_level({});
  v.pre = "no-such-pattern";
  CHECK(error_of(v, ErrorCode::kUnsupported).find("'no-such-pattern'") != std::string::npos);
  v = byte_level({});
  v.eos = 256;
  CHECK(error_of(v, ErrorCode::kInvalidFile).find("end token") != std::string::npos);
  v.eos = -2;
  CHECK(error_of(v, ErrorCode::kInvalidFile).find("end token") != std::string::npos);
  v = byte_level({});
  v.add_bos = true;
  CHECK(error_of(v, ErrorCode::kInvalidFile).find("bos") != std::string::npos);
  v = byte_level({});
  add(v, "a");
  CHECK(error_of(v, ErrorCode::kInvalidFile).find("a text of its own") != std::string::npos);
  v = sentencepiece();
  v.tokens[5].score = std::numeric_limits<float>::quiet_NaN();
  CHECK(error_of(v, ErrorCode::kInvalidFile).find("score") != std::string::npos);
  v = wordpiece();
  v.unk = kNoToken;
  CHECK(error_of(v, ErrorCode::kInvalidFile).find("unknown token") != std::string::npos);
  v = unigram();
  v.unk = kNoToken;
  CHECK(error_of(v, ErrorCode::kInvalidFile).find("unknown token") != std::string::npos);
}

TEST_CASE("decode refuses ids out of range") {
  const Tokenizer t(byte_level({}));
  CHECK_THROWS_AS(t.decode(Ids{256}, true), Error);
  CHECK_THROWS_AS(t.decode(Ids{-1}, true), Error);
}

// These tests finish only if the work is nearly linear in the length.
TEST_CASE("a long text without a break") {
  constexpr size_t kBytes = 400'000;
  Vocabulary spm = sentencepiece();
  for (const char* text : {"a", "aa", "aaaa", "aaaaaaaa"}) add(spm, text, TokenType::kNormal, -1);
  Vocabulary uni = unigram(), word = wordpiece();
  const Tokenizer tokenizers[] = {Tokenizer(spm),
                                  Tokenizer(byte_level({{"a", "a"}, {"aa", "aa"}, {"aaaa", "aaaa"}}, "llama3")),
                                  Tokenizer(byte_level({{"a", "a"}}, "deepseek-llm")), Tokenizer(uni), Tokenizer(word)};
  for (const Tokenizer& t : tokenizers) {
    for (const std::string& unit :
         {std::string("a"), std::string(" "), std::string("\n"), std::string("\xFF"), std::string("7")}) {
      const std::string text = repeat(unit, kBytes) + "b";
      CHECK_NOTHROW(t.encode(text, true, true));
    }
  }
  CHECK(tokenizers[0].encode(repeat("a", kBytes), false, false).size() == kBytes / 8 + 3);  // the blank is three bytes
  CHECK(tokenizers[1].encode(repeat("a", kBytes), false, false).size() == kBytes / 8);
}

TEST_CASE("special tokens in a megabyte of their own first characters") {
  Vocabulary v = byte_level({});
  for (size_t n = 2; n <= 32; ++n) add(v, std::string(n, '\n'), TokenType::kUserDefined);
  const Tokenizer t(v);
  const Ids ids = t.encode(std::string(1'000'001, '\n'), false, false);
  CHECK(ids.size() == 1'000'000 / 32 + 1);
  CHECK(ids.back() == '\n');
}

TEST_CASE("many threads share a tokenizer") {
  const Tokenizer t(byte_level({{"a", "b"}, {"ab", "c"}}, "qwen2"));
  const std::string text = repeat("abc 12 \xC3\xA9!\n", 20000);
  const Ids expected = t.encode(text, true, true);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      if (t.encode(text, true, true) != expected) ++wrong;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("text map finds what was inserted and keeps the first") {
  TextMap map;
  std::vector<std::string> keys;
  for (int i = 0; i < 5000; ++i) keys.push_back("key" + std::to_string(i * 7919));
  keys.push_back("");
  for (size_t i = 0; i < keys.size(); ++i) CHECK(map.insert(keys[i], static_cast<int32_t>(i)));
  CHECK_FALSE(map.insert("key0", 9));
  bool all = true;
  for (size_t i = 0; i < keys.size(); ++i) all = all && map.find(keys[i]) == static_cast<int32_t>(i);
  CHECK(all);
  CHECK(map.find("key") == TextMap::kNone);
  CHECK(TextMap().find("x") == TextMap::kNone);
}

TEST_CASE("byte trie finds the longest key within a limit") {
  const ByteTrie trie({{"ab", 1}, {"abcd", 2}, {"ab", 3}, {"", 4}, {"\xFF", 5}});
  CHECK(trie.longest_match("abcde", 0).length == 4);
  CHECK(trie.longest_match("abcde", 0, 3).value == 1);  // the first of equal keys
  CHECK(trie.longest_match("abc", 0).length == 2);
  CHECK(trie.longest_match("bab", 1).value == 1);
  CHECK(trie.longest_match("x\xFF", 1).value == 5);
  CHECK(trie.longest_match("x", 0).length == 0);
  CHECK(ByteTrie().empty());
}

}  // namespace infer
