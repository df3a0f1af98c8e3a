// The bytes of OpenAI's answer formats, whole and streamed.
#include "src/server/openai_formats.h"

#include <doctest/doctest.h>

#include "ggml-like/gguf.h"
#include "tests/unit/server/test_tokenizer.h"

namespace infer {
namespace {

// A request whose answers arrive event by event, written in one format.
struct Told {
  Told(std::unique_ptr<AnswerFormat> its_format, int32_t n) : format(std::move(its_format)) {
    answers.id = "id";
    answers.created = 5;
    answers.model = "m";
    answers.params.n = n;
    answers.tokenizer = &test::tokenizer();
  }
  std::string next(const AnswerEvent& event) {
    answers.take(event);
    return format->next(answers, event);
  }
  std::unique_ptr<AnswerFormat> format;
  Answers answers;
};

AnswerEvent event(int32_t choice, const std::string& content, FinishReason finished = FinishReason::kNone) {
  AnswerEvent e;
  e.choice = choice;
  e.delta.content = content;
  e.new_tokens = 1;
  e.finished = finished;
  return e;
}

const std::string kHead = R"("created":5,"model":"m","choices":[)";
std::string chat_chunk(const std::string& choice) {
  return R"(data: {"id":"id","object":"chat.completion.chunk",)" + kHead + choice + "]";
}
std::string text_chunk(const std::string& choice) {
  return R"(data: {"id":"id","object":"text_completion",)" + kHead + choice + "]";
}

TEST_CASE("openai formats: a streamed chat") {
  Told told(make_chat_completion_format(), 2);
  told.answers.choices.resize(2);
  CHECK(
      told.format->first(told.answers) ==
      chat_chunk(R"({"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null})") +
          "}\n\n" +
          chat_chunk(R"({"index":1,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null})") +
          "}\n\n");
  CHECK(told.next(event(1, "a\nb")) ==
        chat_chunk(R"({"index":1,"delta":{"content":"a\nb"},"logprobs":null,"finish_reason":null})") + "}\n\n");
  AnswerEvent thinks = event(0, "");
  thinks.delta.reasoning = "hm";
  CHECK(told.next(thinks) ==
        chat_chunk(R"({"index":0,"delta":{"reasoning_content":"hm"},"logprobs":null,"finish_reason":null})") + "}\n\n");
  CHECK(told.next(event(0, "")) == "");  // an incomplete character
  // The reason to finish has a chunk of its own.
  CHECK(told.next(event(1, "c", FinishReason::kEndOfGeneration)) ==
        chat_chunk(R"({"index":1,"delta":{"content":"c"},"logprobs":null,"finish_reason":null})") + "}\n\n" +
            chat_chunk(R"({"index":1,"delta":{},"logprobs":null,"finish_reason":"stop"})") + "}\n\n");
  CHECK(told.format->last(told.answers) == "data: [DONE]\n\n");
  CHECK(told.format->error(told.answers, ApiError(500, "server_error", "broken")) ==
        R"(data: {"error":{"message":"broken","type":"server_error","param":null,"code":null}})"
        "\n\n");
}

TEST_CASE("openai formats: usage is null until the last chunk") {
  for (const bool chat : {false, true}) {
    Told told(chat ? make_chat_completion_format() : make_completion_format({}), 1);
    told.answers.params.include_usage = true;
    told.answers.choices.resize(1);
    CHECK(told.next(event(0, "x"))
              .ends_with(R"(],"usage":null})"
                         "\n\n"));
    const std::string last = told.format->last(told.answers);
    CHECK(last.find(chat ? "chat.completion.chunk" : "text_completion") != std::string::npos);
    CHECK(last.find(R"("choices":[],"usage":{"prompt_tokens":0,"completion_tokens":1,)") != std::string::npos);
  }
}

TEST_CASE("openai formats: timings are sent at the end of the first choice") {
  for (const bool chat : {false, true}) {
    Told told(chat ? make_chat_completion_format() : make_completion_format({}), 2);
    told.answers.params.timings = true;
    told.answers.choices.resize(2);
    CHECK(told.next(event(1, "x", FinishReason::kMaxTokens)).find("timings") == std::string::npos);
    CHECK(told.next(event(0, "x", FinishReason::kMaxTokens)).find(R"("length"}],"timings":{)") != std::string::npos);
    CHECK(Json::parse(told.format->whole(told.answers))["timings"]["predicted_n"] == 1);
  }
}

TEST_CASE("openai formats: a streamed completion begins with the echoed prompt") {
  Told told(make_completion_format({"one ", "two "}), 2);
  told.answers.choices.resize(4);
  CHECK(told.next(event(3, "x")) ==
        text_chunk(R"({"index":3,"text":"two x","logprobs":null,"finish_reason":null})") + "}\n\n");
  CHECK(told.next(event(3, "y")) ==
        text_chunk(R"({"index":3,"text":"y","logprobs":null,"finish_reason":null})") + "}\n\n");
  CHECK(told.next(event(0, "", FinishReason::kMaxTokens)) ==
        text_chunk(R"({"index":0,"text":"one ","logprobs":null,"finish_reason":null})") + "}\n\n" +
            text_chunk(R"({"index":0,"text":"","logprobs":null,"finish_reason":"length"})") + "}\n\n");
}

TEST_CASE("openai formats: log-probabilities of the prompt come first, for every choice") {
  const TokenId word = test::tokenizer().encode("time", false, false)[0];
  Told told(make_completion_format({"time"}), 2);
  told.answers.params.top_logprobs = 0;
  told.answers.choices.resize(2);
  AnswerEvent first = event(0, "time");
  first.prompt_scores = {{word, std::nullopt, {}}};
  first.delta.scores = {{word, -0.5, {}}};
  const std::string text = told.next(first);
  CHECK(text.find(R"("token_logprobs":[null,-0.5])") != std::string::npos);
  told.answers.take(event(1, "", FinishReason::kMaxTokens));
  const Json choices = Json::parse(told.format->whole(told.answers))["choices"];
  CHECK(choices[0]["logprobs"]["token_logprobs"] == Json::parse("[null, -0.5]"));
  CHECK(choices[1]["logprobs"]["token_logprobs"] == Json::parse("[null]"));
  CHECK(choices[1]["text"] == "time");
}

TEST_CASE("openai formats: reasoning is a member of its own") {
  Told told(make_chat_completion_format(), 2);
  told.answers.choices.resize(2);
  AnswerEvent thinks = event(0, "");
  thinks.delta.reasoning = "hm";
  told.answers.take(thinks);
  told.answers.take(event(0, "yes", FinishReason::kEndOfGeneration));
  const Json response = Json::parse(told.format->whole(told.answers));
  CHECK(response["choices"][0] == Json::parse(R"({"index": 0, "message": {"role": "assistant", "content": "yes",
    "reasoning_content": "hm", "refusal": null}, "logprobs": null, "finish_reason": "stop"})"));
  CHECK(!response["choices"][1]["message"].contains("reasoning_content"));
  CHECK(response["usage"]["completion_tokens"] == 2);
}

}  // namespace
}  // namespace infer
