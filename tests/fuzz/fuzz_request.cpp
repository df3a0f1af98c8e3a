// Fuzz target for the request parsers: any bytes as the head of an HTTP request and as the body of every route.
//
// Input: the first byte chooses the parser, the rest is the text.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "src/server/access.h"
#include "src/server/api_error.h"
#include "src/server/http_head.h"
#include "src/server/requests.h"
#include "src/text/utf8.h"

namespace {

using namespace infer;

void require(bool condition) {
  if (!condition) __builtin_trap();
}

// An error is one line that is safe to print to a terminal, and a body that is JSON.
void check_error(const ApiError& error) {
  const std::string text = error.what();
  require(error.status() >= 400 && error.status() < 600);
  require(is_valid_utf8(text) && text.find('\n') == std::string::npos && text.find('\x1b') == std::string::npos);
  require(Json::parse(error.to_json().dump())["error"]["message"] == text);
}

void check_generation(const GenerationParams& params, const RequestContext& context) {
  params.sampling.validate();
  require(params.n >= 1 && params.n <= context.limits.max_choices && params.max_tokens >= -1);
  require(params.stop.size() <= context.limits.max_stops && params.priority >= -100 && params.priority <= 100);
  for (const auto& [token, bias] : params.sampling.logit_bias) {
    require(token >= 0 && token < context.n_vocab && bias <= 100 && (bias >= -100 || std::isinf(bias)));
  }
}

void read_body(uint8_t which, const std::string& text) {
  RequestContext context;
  context.n_vocab = 1000;
  context.tokenize = [](std::string_view text) { return std::vector<TokenId>(text.size(), 7); };
  const Json body = parse_json_object(text, {.depth = context.limits.max_depth});
  switch (which % 5) {
    case 0:
      check_generation(parse_chat_request(body, context).generation, context);
      break;
    case 1: {
      const CompletionRequest request = parse_completion_request(body, context);
      check_generation(request.generation, context);
      require(!request.prompts.empty());
      break;
    }
    case 2:
      require(!parse_embedding_request(body, context).inputs.empty());
      break;
    case 3:
      parse_tokenize_request(body);
      break;
    default:
      for (const TokenId token : parse_detokenize_request(body, context)) require(token >= 0 && token < 1000);
  }
}

void read_head(const std::string& text) {
  const HttpHead head = parse_http_head(text, {});
  // The head that is passed to the library parses to the same.
  const HttpHead again = parse_http_head(head_text(head), {});
  require(again.method == head.method && again.target == head.target && again.chunked == head.chunked);
  require(again.content_length == head.content_length && again.headers.size() <= head.headers.size());
  host_allowed(head.value("host"), "localhost", {"a"});
  origin_allowed(head.value("origin"), head.value("host"), {"a"});
  find_api_key({"key"}, head.value("authorization"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  try {
    if (data[0] % 6 == 5) {
      read_head(text);
    } else {
      read_body(data[0] % 6, text);
    }
  } catch (const ApiError& error) {
    check_error(error);
  }
  return 0;
}
