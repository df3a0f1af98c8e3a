// JSON schemas: what each keyword allows, what is refused, and the messages. Cases in pairs, one allowed and one not.
#include <doctest/doctest.h>

#include "ggml-like/error.h"
#include "tests/unit/text/grammar_support.h"

namespace infer {
namespace {

using test::match_schema;
using test::schema_error;

void accepts(const std::string& schema, std::initializer_list<const char*> texts) {
  CAPTURE(schema);
  for (const char* text : texts) {
    CAPTURE(text);
    CHECK(match_schema(schema, text) == "accept");
  }
}

void refuses(const std::string& schema, std::initializer_list<const char*> texts) {
  CAPTURE(schema);
  for (const char* text : texts) {
    CAPTURE(text);
    CHECK(match_schema(schema, text) != "accept");
  }
}

}  // namespace

TEST_CASE("schema: values of any kind") {
  accepts("{}",
          {"1", "-0.5e-3", "\"a\\u00e9\\ud83d\\ude00\"", "{\"a\": [1, {}], \"a\":null}", "[\n  1,\n  2\n]", "true"});
  refuses("{}", {"", "01", "1.", "\"\\ud83d\"", "\"\\x\"", "[1,]", "{\"a\" 1}", "nul", "'a'", "\"\n\""});
  // Not finite for readers with doubles.
  refuses("{\"type\": \"number\"}", {"1e400", "1e200"});
  accepts("{\"type\": \"number\"}", {"1e21", "1e-300", "12345678901234567890123"});
  accepts("{\"type\": [\"integer\", \"null\"]}", {"7", "null"});
  refuses("{\"type\": [\"integer\", \"null\"]}", {"7.5", "\"7\""});
}

TEST_CASE("schema: keys in their order, optional ones left out, others last") {
  const std::string closed =
      R"({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "integer"}},
          "required": ["b"], "additionalProperties": false})";
  accepts(closed, {R"({"b":1})", R"({"a":1,"b":2})", R"({"b":1,"c":2})", R"({"a": 1, "b": 2, "c": 3})"});
  refuses(closed, {R"({})", R"({"a":1})", R"({"b":1,"a":2})", R"({"a":1,"c":2})", R"({"b":1,})", R"({"b":1,"d":1})",
                   R"({,"b":1})", R"({"b":1,"b":2})"});
  const std::string open =
      R"({"type": "object", "properties": {"id": {"type": "integer"}, "i": {}}, "required": ["id"]})";
  accepts(open, {R"({"id":1,"idx":2,"":3})", R"({"id":1,"i":2,"j":3})", R"({"id":1,"é":2,"\n":3})"});
  refuses(open, {R"({"id":1,"id":"x"})", R"({"id":1,"\u0069d":"x"})", R"({"idx":1})"});
  const std::string control = R"({"type": "object", "properties": {"\u0001": {"type": "integer"}}})";
  accepts(control, {R"({"\u0001":1})", R"({"\u0002":"x"})", R"({"\u0001":1,"\u0001a":"x"})"});
  refuses(control, {R"({"\u0001":"x"})"});
}

TEST_CASE("schema: required keys that are not declared, and false properties") {
  const std::string undeclared =
      R"({"type": "object", "properties": {"a": {}}, "required": ["b"], "additionalProperties": {"type": "null"}})";
  accepts(undeclared, {R"({"a":1,"b":null})", R"({"b":null,"c":null})"});
  refuses(undeclared, {R"({"a":1})", R"({"b":1})"});
  accepts(R"({"type": "object", "properties": {"a": false, "b": {}}})", {R"({"b":1})", R"({"c":1})"});
  refuses(R"({"type": "object", "properties": {"a": false, "b": {}}})", {R"({"a":1})"});
}

TEST_CASE("schema: numbers of properties") {
  accepts(R"({"type": "object", "maxProperties": 2})", {"{}", R"({"a":1,"b":2})"});
  refuses(R"({"type": "object", "maxProperties": 2})", {R"({"a":1,"b":2,"c":3})"});
  accepts(R"({"type": "object", "properties": {"a": {}}, "minProperties": 1})", {R"({"a":1})", R"({"b":1})"});
  refuses(R"({"type": "object", "properties": {"a": {}}, "minProperties": 1})", {"{}"});
  CHECK(schema_error(R"({"type": "object", "minProperties": 2})") ==
        "[schema] #: expected keywords that can be enforced, found minProperties");
}

TEST_CASE("schema: arrays, in the spelling of both drafts") {
  accepts(R"({"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 40})", {"[1,2]", "[1, 2, 3]"});
  refuses(R"({"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 40})",
          {"[1]", "[]", "[1,\"2\"]"});
  for (
      const char* tuple :
      {R"({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "null"}], "items": {"type": "boolean"}})",
       R"({"type": "array", "items": [{"type": "integer"}, {"type": "null"}], "additionalItems": {"type": "boolean"}})"}) {
    accepts(tuple, {"[]", "[1]", "[1,null]", "[1,null,true,false]"});
    refuses(tuple, {"[null]", "[1,true]", "[1,null,1]"});
  }
  refuses(R"({"type": "array", "prefixItems": [{"type": "integer"}, {}], "minItems": 3})", {"[1,2]", "[1]"});
  accepts(R"({"type": "array", "prefixItems": [{"type": "integer"}, {}], "minItems": 3})", {"[1,2,3]"});
  refuses(R"({"type": "array", "prefixItems": [{}, {}], "maxItems": 1})", {"[1,2]"});
}

TEST_CASE("schema: lengths count code points, however these are escaped") {
  const std::string two = R"({"type": "string", "minLength": 2, "maxLength": 2})";
  accepts(two, {R"("ab")", R"("é漢")", R"("😀😀")", R"("\ud83d\ude00\n")"});
  refuses(two, {R"("a")", R"("abc")", R"("😀")", R"("\ud83d\ude00")", R"("\u0061")"});
}

TEST_CASE("schema: patterns") {
  const auto pattern = [](const std::string& text) { return R"({"type": "string", "pattern": ")" + text + "\"}"; };
  accepts(pattern("^(a|b)+c?$"), {R"("ab")", R"("bc")"});
  refuses(pattern("^(a|b)+c?$"), {R"("c")", R"("acc")", R"("")"});
  accepts(pattern("b"), {R"("abc")", R"("b")", R"("\nb")"});
  refuses(pattern("b"), {R"("ac")"});
  accepts(pattern("^a|b$"), {R"("axx")", R"("xxb")"});
  refuses(pattern("^a|b$"), {R"("xax")"});
  accepts(pattern(R"(^[^\\d\\s]\\u{1F600}\\uD83D\\uDE00\\x41\\t?$)"), {R"("x😀😀A")", R"("x😀😀A\t")"});
  refuses(pattern(R"(^[^\\d\\s]\\u{1F600}\\uD83D\\uDE00\\x41\\t?$)"), {R"("1😀😀A")"});
  accepts(pattern(R"(^\\\\\"/$)"), {R"("\\\"/")"});
  accepts(pattern("^(?:a{2,3}?)(?<n>b)*?$"), {R"("aab")"});
  accepts(pattern("^.$"), {R"("é")"});
  refuses(pattern("^.$"), {R"("\n")", "\"\xE2\x80\xA8\""});
  for (const char* wrong : {"^(a", "a)", "[z-a]", "a**", "{1}", "a{2,1}", "\\\\q", "(?=a)", "(?<!a)b", "\\\\1", "\\\\b",
                            "\\\\p{L}", "]", "a|*", "x^y"}) {
    CAPTURE(wrong);
    CHECK(schema_error(pattern(wrong)).starts_with("[schema] #/pattern: expected "));
  }
}

TEST_CASE("schema: patterns combined with lengths") {
  accepts(R"({"type": "string", "pattern": "^[a-z]*$", "minLength": 1, "maxLength": 3})", {R"("a")", R"("abc")"});
  refuses(R"({"type": "string", "pattern": "^[a-z]*$", "minLength": 1, "maxLength": 3})", {R"("")", R"("abcd")"});
  accepts(R"({"type": "string", "pattern": "^ab?$", "maxLength": 5})", {R"("a")"});
  CHECK(schema_error(R"({"type": "string", "pattern": "^(ab)*$", "maxLength": 5})") != "");
}

TEST_CASE("schema: formats") {
  accepts(R"({"type": "string", "format": "date"})", {R"("2024-02-29")", R"("2000-02-29")"});
  refuses(R"({"type": "string", "format": "date"})", {R"("2023-02-29")", R"("1900-02-29")", R"("2024-04-31")"});
  accepts(R"({"type": "string", "format": "ipv6"})", {R"("::1")", R"("2001:db8::ff00:42:8329")", R"("::")"});
  refuses(R"({"type": "string", "format": "ipv6"})",
          {R"("1::2::3")", R"("12345::")", R"("1:2:3:4:5:6:7")", R"("1:2:3:4:5:6:7:8:9")"});
  accepts(R"({"type": "string", "format": "duration"})", {R"("P1DT2H")", R"("PT15M")", R"("P2W")"});
  refuses(R"({"type": "string", "format": "duration"})", {R"("P")", R"("PT")", R"("P1DT")"});
  accepts(R"({"type": "string", "format": "made-up"})", {R"("x")"});
  CHECK(schema_error(R"({"type": "string", "format": "regex"})").find("format regex") != std::string::npos);
}

TEST_CASE("schema: bounds of integers, every number near them") {
  const std::pair<int, int> ranges[] = {{0, 100}, {-17, 23}, {7, 7}, {95, 1203}, {-1000, -99}, {-5, 0}, {1, 10}};
  for (const auto& [low, high] : ranges) {
    const auto grammar = grammar::parse_json_schema("{\"type\": \"integer\", \"minimum\": " + std::to_string(low) +
                                                    ", \"maximum\": " + std::to_string(high) + "}");
    for (int n = low - 1200; n <= high + 1200; ++n) {
      CAPTURE(n);
      CHECK((test::result_of(*grammar, std::to_string(n)) == "accept") == (n >= low && n <= high));
    }
  }
  accepts(R"({"type": "integer", "exclusiveMinimum": 1.5, "exclusiveMaximum": 4})", {"2", "3"});
  refuses(R"({"type": "integer", "exclusiveMinimum": 1.5, "exclusiveMaximum": 4})", {"1", "4", "02"});
  accepts(R"({"type": "integer", "minimum": 1950})", {"1950", "2000", "123456789012345678901"});
  refuses(R"({"type": "integer", "minimum": 1950})", {"1949", "0", "-3000", "999"});
}

TEST_CASE("schema: bounds of numbers, every number near them") {
  struct Range {
    const char* schema;
    double low, high;
    bool open;
  };
  const Range ranges[] = {
      {R"("minimum": 0, "maximum": 1)", 0, 1, false},
      {R"("minimum": -0.5, "maximum": 2.25)", -0.5, 2.25, false},
      {R"("exclusiveMinimum": 0.1, "exclusiveMaximum": 1.5)", 0.1, 1.5, true},
      {R"("exclusiveMinimum": -1, "exclusiveMaximum": 0)", -1, 0, true},
      {R"("minimum": 9.99, "maximum": 10.01)", 9.99, 10.01, false},
      {R"("minimum": 3)", 3, 1e9, false},
  };
  for (const Range& range : ranges) {
    const auto grammar = grammar::parse_json_schema(std::string(R"({"type": "number", )") + range.schema + "}");
    for (int thousandths = -3000; thousandths <= 12000; ++thousandths) {
      std::string text = std::to_string(std::abs(thousandths) / 1000) + "." +
                         std::to_string(1000 + std::abs(thousandths) % 1000).substr(1);
      if (thousandths < 0) text = "-" + text;
      const double value = std::stod(text);
      const bool valid =
          range.open ? value > range.low && value < range.high : value >= range.low && value <= range.high;
      CAPTURE(range.schema);
      CAPTURE(text);
      const bool accepted = test::result_of(*grammar, text) == "accept";
      if (!valid) CHECK(!accepted);
      // Without its trailing zeros a valid number is always accepted.
      if (!valid || thousandths % 1000 == 0 || text.back() == '0') continue;
      CHECK(accepted);
    }
    for (int n = -20; n <= 20; ++n) {
      const bool valid = range.open ? n > range.low && n < range.high : n >= range.low && n <= range.high;
      CHECK((test::result_of(*grammar, std::to_string(n)) == "accept") == valid);
    }
  }
}

TEST_CASE("schema: enum and const, combined with other keywords") {
  accepts(R"({"enum": ["a", "ab", 1, 2.5, null, {"k": [1, "\""]}]})",
          {R"("a")", R"("ab")", "1", "2.5", "null", R"({"k": [1, "\""]})"});
  refuses(R"({"enum": ["a", "ab", 1]})", {R"("abc")", "11", "\"\""});
  accepts(R"({"type": "string", "enum": ["x", 1], "maxLength": 3})", {R"("x")"});
  refuses(R"({"type": "string", "enum": ["x", 1], "maxLength": 3})", {"1"});
  refuses(R"({"enum": ["ax", "bx"], "pattern": "^a"})", {R"("bx")"});
  accepts(R"({"const": 1.0})", {"1"});
}

TEST_CASE("schema: allOf, anyOf and oneOf") {
  const std::string both =
      R"({"allOf": [{"properties": {"a": {"type": "integer"}}, "required": ["a"], "type": "object"},
                                         {"properties": {"b": {"type": "string"}, "a": {"maximum": 5}}}]})";
  accepts(both, {R"({"a":1,"b":"x"})", R"({"a":5})"});
  refuses(both, {R"({"a":6})", R"({"b":"x"})", R"({"a":1,"b":2})"});
  const std::string closed =
      R"({"allOf": [{"type": "object", "properties": {"a": {}}, "additionalProperties": false}, {"required": [")";
  accepts(closed + "a\"]}]}", {R"({"a":1})"});
  CHECK(schema_error(closed + "b\"]}]}").find("one that none does") != std::string::npos);
  const std::string beside = R"({"type": "object", "properties": {"t": {"type": "string"}}, "required": ["t"],
      "oneOf": [{"properties": {"t": {"const": "x"}, "n": {"type": "integer"}}}, {"properties": {"t": {"const": "y"}}}]})";
  CHECK(schema_error(beside) != "");  // without "required" in the branches they may overlap
  accepts(R"({"oneOf": [{"type": "integer", "maximum": 3}, {"type": "integer", "minimum": 4}, {"type": "null"}]})",
          {"3", "4", "null"});
  CHECK(schema_error(R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})").starts_with("[schema] #/oneOf: "));
  accepts(R"({"type": "string", "anyOf": [{"enum": ["x", 1]}, {"pattern": "^z+$"}]})", {R"("x")", R"("zz")"});
  refuses(R"({"type": "string", "anyOf": [{"enum": ["x", 1]}, {"pattern": "^z+$"}]})", {"1", R"("y")"});
}

TEST_CASE("schema: references") {
  const std::string tree =
      R"({"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "properties": {"k": {"type": "array", "items": {"$ref": "#/$defs/n"}}},
      "required": ["k"], "additionalProperties": false}}})";
  accepts(tree, {R"({"k":[{"k":[]},{"k":[{"k":[]}]}]})"});
  refuses(tree, {R"({"k":[{}]})"});
  accepts(R"({"$id": "https://x/y", "$ref": "https://x/y#/$defs/a~1%20b", "$defs": {"a/ b": {"type": "null"}}})",
          {"null"});
  CHECK(schema_error(R"({"properties": {"a": {"$ref": "#/$defs/x"}}})") ==
        "[schema] #/properties/a/$ref: expected a reference to a part of this document, found #/$defs/x");
  CHECK(schema_error(R"({"$ref": "other.json"})") ==
        "[schema] #/$ref: expected a reference inside this document, such as #/$defs/name, found other.json");
  // Keywords next to a reference apply as well.
  refuses(R"({"$ref": "#/$defs/i", "maximum": 5, "$defs": {"i": {"type": "integer"}}})", {"6", "5.5"});
}

TEST_CASE("schema: what cannot be enforced is refused by name and place, or warned about") {
  CHECK(schema_error(R"({"properties": {"a/b": {"not": {"type": "null"}}}})") ==
        "[schema] #/properties/a~1b: expected keywords that can be enforced, found not");
  for (const char* keyword :
       {R"("not": {})", R"("if": {}, "then": {"type": "null"})", R"("contains": {})", R"("uniqueItems": true)",
        R"("patternProperties": {"a": {}})", R"("propertyNames": {"maxLength": 1})", R"("multipleOf": 2)",
        R"("dependentRequired": {"a": ["b"]})", R"("unevaluatedProperties": false)", R"("madeUp": 1)"}) {
    CAPTURE(keyword);
    CHECK(schema_error(std::string("{") + keyword + "}") != "");
  }
  for (const char* nothing :
       {R"("uniqueItems": false)", R"("multipleOf": 1)", R"("patternProperties": {})", R"("then": false)",
        R"("minContains": 3)", R"("title": "t", "default": 1, "examples": [])"}) {
    CAPTURE(nothing);
    CHECK(schema_error(std::string("{") + nothing + "}") == "");
  }
  grammar::SchemaOptions lenient;
  lenient.lenient = true;
  std::vector<std::string> warnings;
  grammar::parse_json_schema(R"({"type": "array", "uniqueItems": true})", lenient, &warnings);
  CHECK(warnings == std::vector<std::string>{"#: uniqueItems is not enforced"});
}

TEST_CASE("schema: values of the wrong type, and schemas that nothing satisfies") {
  CHECK(schema_error(R"({"properties": {"a": {"minLength": -1}}})") ==
        "[schema] #/properties/a/minLength: expected a count, found -1");
  CHECK(schema_error(R"({"enum": []})") == "[schema] #/enum: expected an array of at least one value, found []");
  CHECK(schema_error(R"({"type": "int"})").starts_with("[schema] #/type: expected null, boolean"));
  CHECK(schema_error("[]") == "[schema] #: expected a schema: an object, true or false, found array");
  CHECK(schema_error("{").starts_with("[schema] #: expected JSON, found an error at byte"));
  for (const char* nothing :
       {"false", R"({"type": "integer", "minimum": 2, "maximum": 1})", R"({"type": "null", "enum": [1]})",
        R"({"type": "object", "properties": {"a": false}, "required": ["a"]})"}) {
    CAPTURE(nothing);
    CHECK(schema_error(nothing) == "[schema] #: expected a schema that some value satisfies, found one that none does");
  }
}

TEST_CASE("schema: compact texts only") {
  grammar::SchemaOptions compact;
  compact.compact = true;
  const auto grammar = grammar::parse_json_schema("{}", compact);
  CHECK(test::result_of(*grammar, R"({"a":[1,2]})") == "accept");
  CHECK(test::result_of(*grammar, R"({"a": [1,2]})") == "reject");
}

}  // namespace infer
