// Parameters of other servers: values that request nothing are accepted, others are refused by name.
#include "src/server/unsupported_parameters.h"

#include <doctest/doctest.h>

#include <set>
#include <string_view>

#include "src/server/requests.h"

namespace infer {
namespace {

RequestContext seven_context() {
  RequestContext context;
  context.n_vocab = 100;
  context.tokenize = [](std::string_view text) { return std::vector<TokenId>(text.size(), 7); };
  return context;
}

// A request of the route with one more member, which may be one of stream_options.
Json request_with(ApiRoute route, const std::string& name, const Json& value) {
  Json body = route == kChatRoute         ? Json::parse(R"({"messages": [{"role": "user", "content": "x"}]})")
              : route == kCompletionRoute ? Json::parse(R"({"prompt": "x"})")
                                          : Json::parse(R"({"input": "x"})");
  constexpr std::string_view kOptions = "stream_options.";
  if (name.starts_with(kOptions)) {
    body["stream"] = true;
    body["stream_options"] = Json::object({{name.substr(kOptions.size()), value}});
  } else {
    body[name] = value;
  }
  return body;
}

void parse(ApiRoute route, const Json& body) {
  const RequestContext context = seven_context();
  if (route == kChatRoute) {
    parse_chat_request(body, context);
  } else if (route == kCompletionRoute) {
    parse_completion_request(body, context);
  } else {
    parse_embedding_request(body, context);
  }
}

// "" if the value is accepted, else "STATUS CODE PARAM".
std::string refusal(ApiRoute route, const std::string& name, const Json& value) {
  try {
    parse(route, request_with(route, name, value));
    return "";
  } catch (const ApiError& error) {
    return std::to_string(error.status()) + " " + error.code() + " " + error.param();
  }
}

TEST_CASE("unsupported parameters: every row refuses values that request something and accepts the others") {
  for (const UnsupportedParameter& p : unsupported_parameters()) {
    const std::string name = p.name;
    CAPTURE(name);
    CHECK(std::string(p.reason).ends_with("."));
    CHECK((p.routes != 0 && p.routes <= (kChatRoute | kCompletionRoute | kEmbeddingRoute)));
    const bool any = std::string_view(p.neutral) == "*";
    for (const ApiRoute route : {kChatRoute, kCompletionRoute, kEmbeddingRoute}) {
      if (!(p.routes & route)) continue;
      CHECK(refusal(route, name, nullptr) == "");
      for (const Json& neutral : any ? Json::array() : Json::parse(p.neutral)) {
        CHECK(refusal(route, name, neutral) == "");
      }
      const std::string other = refusal(route, name, {{"some", "other value"}});
      CHECK(other == (any ? "" : "400 unsupported_parameter " + name));
    }
  }
}

TEST_CASE("unsupported parameters: each name once per route") {
  std::set<std::pair<std::string, int>> seen;
  for (const UnsupportedParameter& p : unsupported_parameters()) {
    for (const int route : {kChatRoute, kCompletionRoute, kEmbeddingRoute}) {
      if (p.routes & route) CHECK(seen.emplace(p.name, route).second);
    }
  }
}

TEST_CASE("unsupported parameters: what clients send most often") {
  for (const ApiRoute route : {kChatRoute, kCompletionRoute}) {
    CHECK(refusal(route, "structural_tag", "x") == "400 unsupported_parameter structural_tag");
    CHECK(refusal(route, "guided_whitespace_pattern", " ") == "400 unsupported_parameter guided_whitespace_pattern");
    CHECK(refusal(route, "best_of", 1) == "");
    CHECK(refusal(route, "best_of", 1.0) == "");
    CHECK(refusal(route, "best_of", 3) == "400 unsupported_parameter best_of");
    CHECK(refusal(route, "a_member_nobody_defines", 3) == "");
  }
  CHECK(refusal(kChatRoute, "store", true) == "400 unsupported_parameter store");
  CHECK(refusal(kChatRoute, "metadata", {{"a", "b"}}) == "");
}

TEST_CASE("unsupported parameters: the message says what to do") {
  try {
    parse(kChatRoute, request_with(kChatRoute, "n_probs", 3));
    FAIL("accepted");
  } catch (const ApiError& error) {
    CHECK(std::string(error.what()) == "n_probs: For log-probabilities, use logprobs. Leave it out or send 0.");
  }
}

}  // namespace
}  // namespace infer
