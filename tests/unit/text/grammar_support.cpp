#include "tests/unit/text/grammar_support.h"

#include "ggml-like/error.h"

namespace infer::test {
namespace {

template <typename Parse>
std::string error_of(Parse parse) {
  try {
    parse();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

std::string result_of(const grammar::Grammar& grammar, const std::string& text) {
  return match_name(grammar.match(text));
}

std::string match_gbnf(const std::string& source, const std::string& text) {
  return result_of(*grammar::parse_gbnf(source), text);
}

std::string match_schema(const std::string& schema, const std::string& text) {
  return result_of(*grammar::parse_json_schema(schema), text);
}

std::string gbnf_error(const std::string& source) {
  return error_of([&] { grammar::parse_gbnf(source); });
}

std::string schema_error(const std::string& schema) {
  return error_of([&] { grammar::parse_json_schema(schema); });
}

std::string repeated(const std::string& text, size_t n) {
  std::string out;
  for (size_t i = 0; i < n; ++i) out += text;
  return out;
}

}  // namespace infer::test
