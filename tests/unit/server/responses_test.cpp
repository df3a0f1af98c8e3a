// The parts of responses that endpoints share.
#include "src/server/responses.h"

#include <doctest/doctest.h>

#include <limits>

#include "ggml-like/gguf.h"
#include "tests/unit/server/test_tokenizer.h"

namespace infer {
namespace {

TEST_CASE("responses: base64") {
  CHECK(base64("") == "");
  CHECK(base64("f") == "Zg==");
  CHECK(base64("fo") == "Zm8=");
  CHECK(base64("foo") == "Zm9v");
  CHECK(base64("foobar") == "Zm9vYmFy");
  CHECK(base64(std::string("\0\xFF\xFE", 3)) == "AP/+");
}

TEST_CASE("responses: usage adds up") {
  CHECK(usage_json({10, 4, 5}) == Json::parse(R"({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15,
                                                  "prompt_tokens_details": {"cached_tokens": 4}})"));
}

TEST_CASE("responses: finish reasons by their API names") {
  CHECK(finish_word(FinishReason::kEndOfGeneration) == "stop");
  CHECK(finish_word(FinishReason::kStopString) == "stop");
  CHECK(finish_word(FinishReason::kMaxTokens) == "length");
  CHECK(finish_word(FinishReason::kContextFull) == "length");
}

TEST_CASE("responses: an event of a stream is valid UTF-8") {
  CHECK(sse_event({{"text", "\xFF"}}) == "data: {\"text\":\"\xEF\xBF\xBD\"}\n\n");
}

TEST_CASE("responses: log-probabilities of both forms") {
  const TokenId byte = test::tokenizer().find("<0xC3>");  // an incomplete character
  REQUIRE(byte != kNoToken);
  const std::vector<TokenId> word = test::tokenizer().encode("time", false, false);
  std::vector<TokenScore> scores = {{word[0], std::nullopt, {}},
                                    {byte, -0.5, {{byte, -0.5}, {word[0], -std::numeric_limits<double>::infinity()}}}};
  int64_t offset = 3;
  const Json completion = completion_logprobs(test::tokenizer(), scores, offset);
  CHECK(completion["token_logprobs"] == Json::parse("[null, -0.5]"));
  CHECK(completion["top_logprobs"][0].is_null());
  CHECK(completion["tokens"][1] == "bytes:\\xc3");
  CHECK(completion["top_logprobs"][1]["bytes:\\xc3"] == -0.5);
  CHECK(completion["text_offset"][0] == 3);
  scores.erase(scores.begin());
  const Json entry = chat_logprobs(test::tokenizer(), scores)["content"][0];
  CHECK(entry["token"] == "\xEF\xBF\xBD");
  CHECK(entry["bytes"] == Json::parse("[195]"));
  CHECK(entry["top_logprobs"][1]["logprob"] == -9999.0);
  CHECK_NOTHROW(json_text(entry));
}

TEST_CASE("responses: tokens with equal text stay apart, or the likelier one counts") {
  const auto find = [](const char* text) {
    const TokenId token = test::tokenizer().find(text);
    REQUIRE(token != kNoToken);
    return token;
  };
  const TokenId letter = find("A"), letter_byte = find("<0x41>"), c3 = find("<0xC3>"), e2 = find("<0xE2>");
  REQUIRE(test::tokenizer().piece(letter, true) == test::tokenizer().piece(letter_byte, true));
  const std::vector<TokenScore> scores = {{letter, -0.1, {{letter, -0.1}, {c3, -2.5}, {e2, -3}, {letter_byte, -7}}}};
  int64_t offset = 0;
  CHECK(completion_logprobs(test::tokenizer(), scores, offset)["top_logprobs"][0] ==
        Json::parse(R"({"A": -0.1, "bytes:\\xc3": -2.5, "bytes:\\xe2": -3.0})"));
  const Json top = chat_logprobs(test::tokenizer(), scores)["content"][0]["top_logprobs"];
  CHECK(top[1]["bytes"] == Json::parse("[195]"));
  CHECK(top[2]["bytes"] == Json::parse("[226]"));
  CHECK(top[3]["bytes"] == top[0]["bytes"]);
}

TEST_CASE("responses: bytes of a token that is not valid text") {
  CHECK(token_text("time") == "time");
  CHECK(token_text(" \xE2\x96\x81") == " \xE2\x96\x81");
  CHECK(token_text("\xE2\x96") == "bytes:\\xe2\\x96");
  CHECK(token_text(" a\\\xE2") == "bytes: a\\x5c\\xe2");
  CHECK(token_text("\xC3\xA9\xC3") == "bytes:\\xc3\\xa9\\xc3");
}

TEST_CASE("responses: embeddings") {
  const Json numbers = embedding_response("m", {{0.5f, -1}, {0, 2}}, false, 7);
  CHECK(numbers["data"][1]["embedding"] == Json::parse("[0.0, 2.0]"));
  CHECK(numbers["usage"]["total_tokens"] == 7);
  CHECK(embedding_response("m", {{0.5f, -1}}, true, 7)["data"][0]["embedding"] == "AAAAPwAAgL8=");
}

TEST_CASE("responses: timings of an answer without tokens are finite") {
  AnswerTimes times;
  times.arrived = times.started = times.ended = Clock::now();
  const Json json = timings_json(times, {5, 0, 0}, {});
  CHECK(json["predicted_ms"] == 0);
  CHECK(json["predicted_per_second"] == 0);
  CHECK(json["prompt_n"] == 5);
  CHECK(!json.contains("draft_n"));
}

TEST_CASE("responses: timings count the drafts of an answer") {
  const Json json = timings_json({}, {5, 0, 9}, {2, 8, 6});
  CHECK(json["draft_n"] == 8);
  CHECK(json["draft_n_accepted"] == 6);
}

}  // namespace
}  // namespace infer
