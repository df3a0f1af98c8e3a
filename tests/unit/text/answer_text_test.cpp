// Tokens become the text of an answer, piece by piece.
#include "src/text/answer_text.h"

#include <doctest/doctest.h>

#include "ggml-like/gguf.h"
#include "src/model/vocabulary_loader.h"

namespace infer {
namespace {

const Tokenizer& tokenizer() {
  static const Tokenizer one(
      load_vocabulary(*GgufFile::open(std::string(INFER_SOURCE_DIR) + "/tests/data/vocab_only.gguf")));
  return one;
}

TokenId byte_token(unsigned char byte) {
  char text[8];
  std::snprintf(text, sizeof(text), "<0x%02X>", byte);
  return tokenizer().find(text);
}

// The bytes of a text as tokens, so that there is a border between tokens everywhere.
std::vector<TokenId> bytes_of(const std::string& text) {
  std::vector<TokenId> tokens;
  for (const char c : text) tokens.push_back(byte_token(static_cast<unsigned char>(c)));
  return tokens;
}

// A chat whose template writes no calls.
std::shared_ptr<const ChatRules> chat_with(std::string prompt, AnswerEnd end = {}) {
  auto format = std::make_shared<ChatFormat>();
  format->end = std::move(end);
  return std::make_shared<const ChatRules>(ChatRules{std::move(format), std::move(prompt), {}, ""});
}

struct Told {
  AnswerDelta all;
  std::vector<std::string> pieces;
  bool stopped = false;
};

Told tell(const std::string& text, const std::vector<std::string>& stops,
          const std::optional<std::string>& chat_prompt = std::nullopt) {
  AnswerText answer(tokenizer(), {stops, {}, chat_prompt ? chat_with(*chat_prompt) : nullptr});
  Told told;
  const auto take = [&](const AnswerDelta& delta) {
    told.pieces.push_back(delta.content);
    told.all.content += delta.content;
    told.all.reasoning += delta.reasoning;
    told.all.scores.insert(told.all.scores.end(), delta.scores.begin(), delta.scores.end());
  };
  for (const TokenId token : bytes_of(text)) {
    AnswerDelta delta;
    std::optional<TokenScore> score = TokenScore{token, -1.0, {}};
    CHECK(answer.add({&token, 1}, false, delta, {&score, 1}) == 1);
    take(delta);
    if (answer.stopped()) break;
  }
  AnswerDelta delta;
  answer.finish(delta);
  take(delta);
  told.stopped = answer.stopped();
  return told;
}

TEST_CASE("answer text: characters are whole") {
  const Told told = tell("a\xC3\xBC\xF0\x9F\x99\x82z", {});
  CHECK(told.all.content == "a\xC3\xBC\xF0\x9F\x99\x82z");
  CHECK(told.pieces == std::vector<std::string>{"a", "", "\xC3\xBC", "", "", "", "\xF0\x9F\x99\x82", "z", ""});
  CHECK(told.all.scores.size() == 8);
}

TEST_CASE("answer text: an incomplete character at the end of the answer is replaced") {
  const Told told = tell("a\xF0\x9F", {});
  CHECK(told.all.content == "a\xEF\xBF\xBD");
  CHECK(told.all.scores.size() == 3);
}

TEST_CASE("answer text: stop strings across tokens, with the log-probabilities of the visible ones") {
  const Told told = tell("one END two", {"nothing", "END"});
  CHECK(told.stopped);
  CHECK(told.all.content == "one ");
  CHECK(told.all.scores.size() == 4);
  const Told not_quite = tell("one EN", {"END"});
  CHECK(!not_quite.stopped);
  CHECK(not_quite.all.content == "one EN");
  CHECK(not_quite.all.scores.size() == 6);
}

TEST_CASE("answer text: reasoning of a chat") {
  const Told thinks = tell("<think>hm</think>yes", {}, "prompt");
  CHECK(thinks.all.reasoning == "hm");
  CHECK(thinks.all.content == "yes");
  const Told begun = tell("hm</think>yes", {}, "prompt<think>\n");
  CHECK(begun.all.reasoning == "hm");
  CHECK(begun.all.content == "yes");
  const Told plain = tell("<think>hm</think>yes", {});
  CHECK(plain.all.content == "<think>hm</think>yes");
  CHECK(plain.all.reasoning.empty());
}

// A step of several tokens gives the same as a step per token: reasoning, then content.
TEST_CASE("answer text: a step of many tokens") {
  const std::vector<TokenId> tokens = bytes_of("<think>hm</think>yes END no");
  AnswerText answer(tokenizer(), {{"END"}, {}, chat_with("prompt")});
  AnswerDelta delta;
  CHECK(answer.add(tokens, false, delta) == tokens.size() - 3);
  answer.finish(delta);
  CHECK(answer.stopped());
  CHECK(delta.reasoning == "hm");
  CHECK(delta.content == "yes ");
}

TEST_CASE("answer text: the token that ends an answer is counted and has no text") {
  const std::vector<TokenId> tokens = bytes_of("abc");
  AnswerText answer(tokenizer(), {});
  AnswerDelta delta;
  CHECK(answer.add(tokens, true, delta) == 3);
  CHECK(answer.add({}, true, delta) == 0);
  answer.finish(delta);
  CHECK(delta.content == "ab");
}

TEST_CASE("answer text: a chat ends where its template ends an answer") {
  const AnswerRules by_text = chat_rules({"END"}, {3}, *chat_with("prompt", {"<end>", kNoToken}));
  CHECK(by_text.stops == std::vector<std::string>{"END", "<end>"});
  CHECK(by_text.stop_tokens == std::vector<TokenId>{3});
  CHECK(by_text.chat->prompt == "prompt");
  const AnswerRules by_token = chat_rules({}, {3}, *chat_with("", {"", 7}));
  CHECK(by_token.stops.empty());
  CHECK(by_token.stop_tokens == std::vector<TokenId>{3, 7});
}

}  // namespace
}  // namespace infer
