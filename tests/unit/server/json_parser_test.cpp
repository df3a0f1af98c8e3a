// JSON from clients: what is accepted, and that no input exceeds its limits of time and memory.
#include "src/server/json_parser.h"

#include <doctest/doctest.h>

#include <functional>

#include "src/server/api_error.h"
#include "tests/unit/server/allocations.h"

namespace infer {
namespace {

constexpr size_t kBody = 16 << 20;  // the server's default limit

std::string refusal(const std::string& text, const JsonLimits& limits = {}) {
  try {
    parse_json_object(text, limits);
  } catch (const ApiError& error) {
    CHECK(error.status() == 400);
    CHECK(error.code() == "invalid_json");
    return error.what();
  }
  return "";
}

// {"a": [X,X,...]} of about the largest size allowed.
std::string filled(const std::string& value) {
  std::string text = "{\"a\":[" + value;
  while (text.size() < kBody) text += "," + value;
  return text + "]}";
}

std::string object_of(int n_members, const std::string& prefix = "k") {
  std::string text = "{";
  for (int i = 0; i < n_members; ++i) text += (i > 0 ? ",\"" : "\"") + prefix + std::to_string(i) + "\":1";
  return text + "}";
}

TEST_CASE("json: every kind of value") {
  const std::string text =
      R"({"null":null,"yes":true,"no":false,"whole":-3,"big":18446744073709551615,"real":0.5,"text":"\u00e4\n",)"
      R"("list":[1,[2,{"x":[]}],{}],"object":{"b":1,"a":{"c":"d"}}})";
  CHECK(parse_json_object(text, {}) == Json::parse(text));
  CHECK(parse_json_object(text, {}).dump() == Json::parse(text).dump());
}

TEST_CASE("json: the last of several members with one name counts, at the place of the first") {
  CHECK(parse_json_object(R"({"a":1,"b":2,"a":{"c":3,"c":4}})", {}).dump() == R"({"a":{"c":4},"b":2})");
  // Also among many members, which are looked up differently.
  std::string text = object_of(1000);
  text.insert(text.size() - 1, R"(,"k7":"last","k999":"too")");
  const Json json = parse_json_object(text, {});
  CHECK(json.size() == 1000);
  CHECK(json["k7"] == "last");
  CHECK(std::next(json.begin(), 7).key() == "k7");
  CHECK(json["k999"] == "too");
  CHECK(json["k16"] == 1);
}

TEST_CASE("json: limits of depth, members and values") {
  const JsonLimits limits{.depth = 3, .object_members = 20, .members = 50, .values = 100};
  CHECK(refusal(R"({"a":[[1]]})", limits) == "");
  CHECK(refusal(R"({"a":[[[1]]]})", limits).find("at most 3 deep") != std::string::npos);
  CHECK(refusal(object_of(20), limits) == "");
  CHECK(refusal(object_of(21), limits).find("at most 20 members in an object") != std::string::npos);
  const auto list = [&](int n, int members) {
    std::string text = "{\"a\":[0";
    for (int i = 0; i < n; ++i) text += "," + object_of(members);
    return text + "]}";
  };
  CHECK(refusal(list(7, 7), limits) == "");
  CHECK(refusal(list(8, 7), limits).find("at most 50 members in all objects") != std::string::npos);
  CHECK(refusal(list(97, 0), limits) == "");
  CHECK(refusal(list(98, 0), limits).find("at most 100 values") != std::string::npos);
}

TEST_CASE("json: what is refused is named in one printable line") {
  for (const char* text : {"", "x", "[]", "1", "{", "{}}", "{\"a\": 1e999}", "{\"a\": \"\xFF\"}", "{\"\x1b\": }"}) {
    CAPTURE(text);
    const std::string said = refusal(text);
    CHECK(said.starts_with("[request] expected a JSON object, found "));
    CHECK(said.find_first_of("\n\x1b") == std::string::npos);
  }
}

TEST_CASE("json: the largest body of any kind is read or refused within its bounds") {
  std::string keys = "{\"k0\":1";
  for (int i = 1; keys.size() < kBody; ++i) keys += ",\"k" + std::to_string(i) + "\":1";
  std::string same = "{\"k\":1";
  while (same.size() < kBody) same += ",\"k\":1";
  const std::pair<std::string, bool> bodies[] = {
      {keys + "}", false},
      {same + "}", false},
      {filled(object_of(4096)), false},
      {filled(R"({"a":1})"), false},
      {filled("{}"), false},
      {filled("[]"), false},
      {filled("[[[[]]]]"), false},
      {filled("1"), false},
      {filled("1.5e300"), false},
      {filled("\"\""), false},
      {filled("\"" + std::string(1000, 'x') + "\""), true},
      {filled("\"" + std::string(1 << 20, 'x') + "\""), true},
      {"{\"a\":\"" + std::string(kBody, 'x') + "\"}", true},
      {"{\"" + std::string(kBody, 'x') + "\":1}", true},
      {"{\"a\":" + std::string(kBody, '1') + "}", false},  // exceeds the range of numbers
      {"{\"a\":0." + std::string(kBody, '1') + "}", true},
      {std::string(kBody, '['), false},
      {"{\"a\":\"" + std::string(kBody, 'x'), false},
      {std::string(kBody, ' ') + "{}", true},
  };
  for (const auto& [body, is_read] : bodies) {
    CAPTURE(body.substr(0, 60));
    test::Allocations heap;
    CHECK((refusal(body) == "") == is_read);
    CHECK(heap.peak() < 256u << 20);
  }
}

TEST_CASE("json: values are destroyed without allocating") {
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += i % 2 == 0 ? "[1," : "{\"a\":";
  deep += "null";
  for (int i = 100000; i-- > 0;) deep += i % 2 == 0 ? ",\"text that does not fit into the object itself\"]" : "}";
  for (const std::string& text : {std::string(R"({"a":[1,[2,{"b":[3,[]]},[[[]]]]],"c":{"d":{}},"e":"x"})"), deep}) {
    auto json = std::make_unique<Json>(Json::parse(text));
    test::Allocations heap;
    json.reset();
    CHECK(heap.count() == 0);
  }
}

}  // namespace
}  // namespace infer
