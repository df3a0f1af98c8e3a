// What the tests of grammars share.
#pragma once

#include <memory>
#include <string>

#include "src/text/grammar/gbnf.h"
#include "src/text/grammar/json_schema.h"

namespace infer::test {

// "accept", "prefix" or "reject".
std::string result_of(const grammar::Grammar& grammar, const std::string& text);
std::string match_gbnf(const std::string& source, const std::string& text);
std::string match_schema(const std::string& schema, const std::string& text);

// The error, or "" if it is accepted.
std::string gbnf_error(const std::string& source);
std::string schema_error(const std::string& schema);

std::string repeated(const std::string& text, size_t n);

}  // namespace infer::test
