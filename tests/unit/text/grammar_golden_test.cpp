// Every reference case of ../shared/goldens/grammar and ../shared/goldens/schema.
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "ggml-like/error.h"
#include "tests/support/skip.h"
#include "tests/unit/text/grammar_support.h"

namespace infer {
namespace {

using nlohmann::ordered_json;

ordered_json read_golden(const std::filesystem::path& path) {
  std::ifstream in(path);
  REQUIRE_MESSAGE(in.good(), path.string());
  return ordered_json::parse(in);
}

// Whether a schema's text may have this result.
bool agrees(const std::string& expected, const std::string& level, const std::string& result) {
  if (expected == "any") return true;
  if (expected == "not_accept") return result != "accept";
  return level == "may_refuse" || result == expected;
}

}  // namespace

TEST_CASE("reference texts of grammars") {
  const auto shared = test::shared_dir("grammars");
  if (!shared) return;
  const ordered_json golden = read_golden(*shared / "goldens" / "grammar" / "grammars.json");
  for (const ordered_json& g : golden["grammars"]) {
    CAPTURE(g["name"].get<std::string>());
    const auto grammar = grammar::parse_gbnf(g["grammar"].get<std::string>());
    for (const ordered_json& c : g["cases"]) {
      CAPTURE(c["text"].get<std::string>());
      CHECK(test::result_of(*grammar, c["text"]) == c["result"].get<std::string>());
    }
  }
  CHECK(golden["grammars"].size() > 40);
}

TEST_CASE("reference grammars that are malformed") {
  const auto shared = test::shared_dir("malformed grammars");
  if (!shared) return;
  const ordered_json golden = read_golden(*shared / "goldens" / "grammar" / "malformed.json");
  for (const ordered_json& g : golden["grammars"]) {
    CAPTURE(g["name"].get<std::string>());
    const std::string error = test::gbnf_error(g["grammar"]);
    if (!g.value("either", false)) CHECK(error != "");
  }
  CHECK(golden["grammars"].size() > 20);
}

TEST_CASE("reference texts of JSON schemas") {
  const auto shared = test::shared_dir("JSON schemas");
  if (!shared) return;
  const ordered_json golden = read_golden(*shared / "goldens" / "schema" / "schemas.json");
  for (const ordered_json& s : golden["schemas"]) {
    CAPTURE(s["name"].get<std::string>());
    const std::string level = s["level"], schema = s["schema"].dump();
    const std::string error = test::schema_error(schema);
    if (level == "must_refuse") CHECK(error != "");
    if (level == "must_support") CHECK(error == "");
    if (error != "") continue;
    const auto grammar = grammar::parse_json_schema(schema);
    for (const ordered_json& c : s["cases"]) {
      CAPTURE(c["text"].get<std::string>());
      const std::string result = test::result_of(*grammar, c["text"]), expected = c["expect"];
      CAPTURE(expected);
      CAPTURE(result);
      CHECK(agrees(expected, level, result));
    }
  }
  CHECK(golden["schemas"].size() > 130);
}

}  // namespace infer
