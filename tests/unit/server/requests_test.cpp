// Requests as clients write them: what is accepted, and what is refused under which name.
#include "src/server/requests.h"

#include <doctest/doctest.h>

#include <functional>

#include "ggml-like/error.h"

namespace infer {
namespace {

RequestContext make_context() {
  RequestContext context;
  context.sampling.temperature = 0.5f;
  context.n_vocab = 100;
  return context;
}

Json parse(const char* text) { return parse_json_object(text, {}); }

ChatRequest chat(const char* text) { return parse_chat_request(parse(text), make_context()); }
CompletionRequest completion(const char* text) { return parse_completion_request(parse(text), make_context()); }

// The error of `parse`, which must fail.
ApiError error_of(const std::function<void()>& parse_it) {
  try {
    parse_it();
  } catch (const ApiError& error) {
    return error;
  }
  return ApiError(0, "", "no error");
}

std::string wrong_parameter(const std::function<void()>& parse_it) {
  const ApiError error = error_of(parse_it);
  CHECK(error.status() == 400);
  return error.param();
}

std::string wrong_in_chat(const char* text) {
  return wrong_parameter([&] { chat(text); });
}
std::string wrong_in_completion(const char* text) {
  return wrong_parameter([&] { completion(text); });
}

TEST_CASE("requests: defaults of a chat") {
  const ChatRequest request = chat(R"({"messages": [{"role": "user", "content": "Hi"}]})");
  const GenerationParams& g = request.generation;
  CHECK(g.n == 1);
  CHECK(g.max_tokens == RequestLimits().default_max_tokens);
  CHECK(g.sampling.temperature == 0.5f);
  CHECK(!g.sampling.seed);
  CHECK(!g.top_logprobs);
  CHECK(!g.stream);
  CHECK(!g.include_usage);
  CHECK(g.stop.empty());
  CHECK(request.prompt.conversation.add_generation_prompt);
  CHECK(request.prompt.conversation.tools.is_null());
  CHECK(request.prompt.conversation.messages == Json::parse(R"([{"role": "user", "content": "Hi"}])"));
}

TEST_CASE("requests: null counts as absent") {
  const GenerationParams g = chat(R"({"messages": [{"role": "user", "content": "Hi"}], "temperature": null, "n": null,
      "stop": null, "max_tokens": null, "stream": null, "seed": null, "logit_bias": null, "tools": null,
      "response_format": null, "stream_options": null})")
                                 .generation;
  CHECK(g.sampling.temperature == 0.5f);
  CHECK(g.n == 1);
  CHECK(g.max_tokens == RequestLimits().default_max_tokens);
}

TEST_CASE("requests: every member of a chat") {
  const ChatRequest request = chat(R"({"model": "m", "user": "u", "messages": [{"role": "user", "content": "Hi"}],
      "temperature": 1.5, "top_p": 0.5, "top_k": 7, "min_p": 0.25, "seed": 18446744073709551615, "n": 3,
      "max_completion_tokens": 9, "stop": ["a", "bc"], "presence_penalty": -1, "frequency_penalty": 2,
      "repetition_penalty": 1.5, "logit_bias": {"5": -100, "99": 2.5}, "logprobs": true, "top_logprobs": 4,
      "stream": true, "stream_options": {"include_usage": true}, "priority": -3, "cache_salt": "s", "timings": true,
      "ignore_eos": true, "repeat_last_n": -1, "chat_template_kwargs": {"enable_thinking": false},
      "tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "auto", "response_format": {"type": "text"}, "unknown": {}})");
  const GenerationParams& g = request.generation;
  const SamplingParams& s = g.sampling;
  CHECK(s.temperature == 1.5f);
  CHECK(s.top_p == 0.5f);
  CHECK(s.top_k == 7);
  CHECK(s.min_p == 0.25f);
  CHECK(s.seed == UINT64_MAX);
  CHECK(s.presence_penalty == -1);
  CHECK(s.frequency_penalty == 2);
  CHECK(s.repeat_penalty == 1.5f);
  CHECK(s.repeat_last_n == -1);
  REQUIRE(s.logit_bias.size() == 2);
  CHECK(s.logit_bias[0] == std::pair<TokenId, float>(5, -100.0f));
  CHECK(s.logit_bias[1] == std::pair<TokenId, float>(99, 2.5f));
  CHECK(g.n == 3);
  CHECK(g.max_tokens == 9);
  CHECK(g.stop == std::vector<std::string>{"a", "bc"});
  CHECK(g.top_logprobs == 4);
  CHECK(g.stream);
  CHECK(g.include_usage);
  CHECK(g.priority == -3);
  CHECK(g.cache_salt == "s");
  CHECK(g.timings);
  CHECK(g.ignore_eog);
  CHECK(request.prompt.conversation.variables == Json::parse(R"({"enable_thinking": false})"));
  CHECK(request.prompt.conversation.tools.size() == 1);
  CHECK_NOTHROW(s.validate());
}

TEST_CASE("requests: seeds") {
  const auto seed = [](const char* text) { return completion(text).generation.sampling.seed; };
  CHECK(seed(R"({"prompt": "a", "seed": 0})") == 0u);
  CHECK(!seed(R"({"prompt": "a", "seed": -1})"));
  CHECK(seed(R"({"prompt": "a", "seed": -2})") == UINT64_MAX - 1);
}

TEST_CASE("requests: tool_choice none offers no tools") {
  const char* text = R"({"messages": [{"role": "user", "content": "x"}], "tools": [{"function": {"name": "f"}}],
      "tool_choice": "none"})";
  CHECK(chat(text).prompt.conversation.tools.is_null());
}

TEST_CASE("requests: prompts in all four forms") {
  using Tokens = std::vector<TokenId>;
  CHECK(std::get<std::string>(completion(R"({"prompt": "a"})").prompts.at(0)) == "a");
  CHECK(completion(R"({"prompt": ["a", "b"]})").prompts.size() == 2);
  CHECK(std::get<Tokens>(completion(R"({"prompt": [1, 99]})").prompts.at(0)) == Tokens{1, 99});
  const auto two = completion(R"({"prompt": [[1], [2, 3]], "n": 2})").prompts;
  REQUIRE(two.size() == 2);
  CHECK(std::get<Tokens>(two[1]) == Tokens{2, 3});
  CHECK(completion(R"({"prompt": "a", "max_tokens": 0, "echo": true, "logprobs": 0})").generation.top_logprobs == 0);
}

TEST_CASE("requests: invalid members are named") {
  CHECK(wrong_in_chat(R"({})") == "messages");
  CHECK(wrong_in_chat(R"({"messages": [1]})") == "messages[0]");
  CHECK(wrong_in_chat(R"({"messages": [{"role": "user"}]})") == "messages[0].content");
  CHECK(wrong_in_chat(R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})") ==
        "messages[0].content[0].type");
  const auto with = [](const std::string& member) {
    const std::string text = R"({"messages": [{"role": "user", "content": "x"}], )" + member + "}";
    return wrong_in_chat(text.c_str());
  };
  CHECK(with(R"("temperature": "1")") == "temperature");
  CHECK(with(R"("temperature": 1e300)") == "temperature");
  CHECK(with(R"("n": 17)") == "n");
  CHECK(with(R"("n": 18446744073709551615)") == "n");
  CHECK(with(R"("n": -9223372036854775808)") == "n");
  CHECK(with(R"("n": 1.5)") == "n");
  CHECK(with(R"("max_tokens": 2147483648)") == "max_tokens");
  CHECK(with(R"("stop": ["a", 1])") == "stop");
  CHECK(with(R"("logit_bias": {"100": 1})") == "logit_bias");
  CHECK(with(R"("logit_bias": {"1": null})") == "logit_bias");
  CHECK(with(R"("top_logprobs": 2)") == "top_logprobs");
  CHECK(with(R"("stream_options": {})") == "stream_options");
  CHECK(with(R"("response_format": {"type": "json_schema"})") == "response_format.json_schema");
  CHECK(with(R"("tool_choice": "required")") == "tool_choice");
  CHECK(wrong_in_completion(R"({"prompt": [100]})") == "prompt");
  CHECK(wrong_in_completion(R"({"prompt": [[1], "a", []]})") == "prompt");
  CHECK(wrong_in_completion(R"({"prompt": "a", "suffix": "b"})") == "suffix");
}

TEST_CASE("requests: messages are one printable line") {
  const ApiError error = error_of([] { chat("{\"messages\": [{\"role\": \"\\u001b[31m\\n\", \"content\": \"\"}]}"); });
  const std::string text = error.what();
  CHECK(text.find('\n') == std::string::npos);
  CHECK(text.find('\x1b') == std::string::npos);
}

TEST_CASE("requests: JSON that is invalid or too deep") {
  const auto refused = [](const std::string& text, int depth = 8) {
    const ApiError error = error_of([&] { parse_json_object(text, {.depth = depth}); });
    return error.status() == 400 && error.code() == "invalid_json";
  };
  for (const char* text : {"", "x", "[]", "1", "{", "{}}", "{\"a\": 1e999}", "{\"a\": \"\xFF\"}", "{\"a\": NaN}"}) {
    CAPTURE(text);
    CHECK(refused(text));
  }
  CHECK(!refused(R"({"a": [[[[[[[1]]]]]]]})"));
  CHECK(refused(R"({"a": [[[[[[[[1]]]]]]]]})"));
  CHECK(!refused(R"({"a": "[[[[[[[[[[[[\"[[[["})"));
  CHECK(refused(std::string(1000000, '[')));
}

TEST_CASE("requests: embeddings and tokens") {
  const auto embedding = [](const char* text) { return parse_embedding_request(parse(text), make_context()); };
  CHECK(embedding(R"({"input": ["a", "b"], "encoding_format": "base64", "pooling": "mean"})").pooling ==
        Pooling::kMean);
  CHECK(!embedding(R"({"input": "a"})").base64);
  CHECK(wrong_parameter([&] { embedding(R"({"input": "a", "pooling": "none"})"); }) == "pooling");
  CHECK(parse_detokenize_request(parse(R"({"tokens": []})"), make_context()).empty());
  CHECK(wrong_parameter([] { parse_detokenize_request(parse(R"({"tokens": [1e9]})"), make_context()); }) == "tokens");
  CHECK(parse_tokenize_request(parse(R"({"content": "a"})")).parse_special);
}

}  // namespace
}  // namespace infer
