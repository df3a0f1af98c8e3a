// Malicious grammars and schemas: each is refused with an error, or compiles within the limits. Nothing here is timed;
// the limits on states and steps stand for time, and a case that ignores them would not end.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/text/grammar_support.h"

namespace infer {

using nlohmann::json;
using test::gbnf_error;
using test::repeated;
using test::schema_error;

TEST_CASE("hostile grammars") {
  CHECK(gbnf_error("root ::= " + repeated("(", 100000))
            .starts_with("[grammar] line 1, column 310: expected at most 300 groups"));
  CHECK(gbnf_error("root ::= " + repeated("(", 50) + "\"a\"" + repeated("{0,1000000000})", 50)) == "");
  CHECK(gbnf_error("root ::= " + repeated("(", 100) + "\"a\"?" + repeated("+)", 100)) == "");
  CHECK(gbnf_error("root ::= [ab]* \"a\" " + repeated("[ab] ", 24)) == "");
  CHECK(gbnf_error("root ::= " + repeated("\"a\"? ", 20000))
            .find("rule root: expected a grammar that compiles to at most") != std::string::npos);
  CHECK(gbnf_error("root ::= \"" + repeated("a", 1000000) + "\"").find("transitions in the whole grammar") !=
        std::string::npos);
  std::string chain = "root ::= a0\n";
  for (int i = 0; i < 20000; ++i) {
    const std::string next = "a" + std::to_string(i + 1);
    chain += "a" + std::to_string(i) + " ::= " + next + " | \"b\" " + next + "\n";
  }
  CHECK(gbnf_error(chain + "a20000 ::= \"x\"") ==
        "[grammar] expected at most 4,096 ways to read the same text, found more");
  std::string doubling = "root ::= a0\n";
  for (int i = 0; i < 60; ++i) {
    const std::string next = "a" + std::to_string(i + 1);
    doubling += "a" + std::to_string(i) + " ::= " + next + " " + next + "\n";
  }
  CHECK(gbnf_error(doubling + "a60 ::= \"x\"") == "");
  CHECK(gbnf_error(std::string(5 << 20, ' '))
            .starts_with("[grammar] line 1, column 1: expected at most 4,194,304 bytes"));
}

TEST_CASE("hostile schemas") {
  CHECK(schema_error(repeated("{\"items\":", 10000) + "{}" + repeated("}", 10000)) ==
        "[schema] #: expected at most 500 levels of JSON, found more");
  CHECK(schema_error(repeated("[", 1000000)) == "[schema] #: expected at most 500 levels of JSON, found more");
  CHECK(schema_error(repeated("{\"allOf\":[", 100) + "{}" + repeated("]}", 100)).find("50 in a row") !=
        std::string::npos);
  CHECK(schema_error(R"({"type": "string", "pattern": "^a{0,1000000000}$"})") == "");
  CHECK(schema_error(R"({"type": "array", "minItems": 1000000000})") == "");
  CHECK(schema_error(json{{"type", "string"}, {"pattern", repeated("(", 100000)}}.dump())
            .starts_with("[schema] #/pattern: expected at most 100 groups inside each other"));

  json values = json::array(), keys = json::object(), branches = json::array(), parts = json::array();
  for (int i = 0; i < 100000; ++i) values.push_back("v" + std::to_string(i));
  CHECK(schema_error(json{{"enum", values}}.dump()) == "");
  CHECK(schema_error(json{{"enum", values}, {"allOf", {{{"enum", values}}}}}.dump()) ==
        "[schema] #: expected a schema whose combinations can be listed, found too many");
  for (int i = 0; i < 6000; ++i) keys["key" + std::to_string(i)] = json::object();
  CHECK(schema_error(json{{"properties", keys}}.dump()) ==
        "[schema] #: expected at most 5,000 members of each object, found more");
  for (int i = 0; i < 40; ++i) parts.push_back({{"anyOf", {{{"minimum", i}}, {{"maximum", i}}}}});
  CHECK(schema_error(json{{"allOf", parts}}.dump()).find("at most 300 combinations") != std::string::npos);
  for (int i = 0; i < 100000; ++i) branches.push_back({{"type", "string"}, {"maxLength", i}});
  CHECK(schema_error(json{{"anyOf", branches}}.dump()).find("at most 500,000 parts") != std::string::npos);
  CHECK(schema_error("{\"description\": \"" + repeated("x", 1000000) + "\", \"type\": \"null\"}") == "");
}

TEST_CASE("references that lead nowhere") {
  CHECK(schema_error(R"({"allOf": [{"$ref": "#"}]})").find("a cycle") != std::string::npos);
  CHECK(schema_error(R"({"anyOf": [{"$ref": "#"}, {"type": "null"}]})").find("left recursion") != std::string::npos);
  // A merge of copies that contain the same merge.
  CHECK(schema_error(R"({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}], "type": "object"},
      "b": {"properties": {"x": {"allOf": [{"$ref": "#/$defs/a"}], "type": "object"}}}}})") == "");
}

}  // namespace infer
