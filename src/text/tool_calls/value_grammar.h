// Values in Python's notation, or in that of Gemma 4 (strings between quotes that are a marker, keys as they are), as
// expressions of a grammar: held to their schemas like JSON, but that objects have no other keys than those declared.
// Used by one thread.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "src/text/grammar/schema_compiler.h"
#include "src/text/ordered_json.h"
#include "src/text/tool_calls/marker_text.h"
#include "src/text/tool_calls/tool_call_format.h"

namespace infer {

class ValueGrammar {
 public:
  // format.kind is kPython or kBare. All arguments must outlive this.
  ValueGrammar(grammar::Rules& rules, const MarkerText& text, const ToolCallFormat& format,
               grammar::SchemaCompiler& schemas);

  // A value that the schema at `place` allows; finish() writes its rule.
  grammar::ExprId value(const nlohmann::ordered_json& schema, const std::string& place);
  grammar::ExprId any();
  // Writes all rules that were asked for, and those they need. Throws Error(kInvalidArgument), which names the place.
  void finish();

 private:
  using ExprId = grammar::ExprId;
  using Json = nlohmann::ordered_json;
  struct Task {
    grammar::RuleId rule;
    const Json* schema;
    std::string place;
  };

  ExprId compile(const Json& schema, const std::string& place);
  ExprId compile_plain(const Json& schema, const std::string& place);
  ExprId string(const Json& schema, const std::string& place);
  ExprId array(const Json& schema, const std::string& place);
  ExprId object(const Json& schema, const std::string& place);
  ExprId map(const Json& schema, const std::string& place);
  ExprId constant(const Json& value);
  ExprId quoted_constant(const std::string& text);
  ExprId any_string();
  ExprId key(const std::string& name);
  ExprId word(const char* json, const char* python);
  ExprId bracketed(const char* open, ExprId inside, const char* close);
  // One character of a set between these quotes of Python.
  ExprId python_character(const grammar::CodePoints& set, char quote);

  grammar::Rules& rules_;
  const MarkerText& text_;
  const ToolCallFormat& format_;
  grammar::SchemaCompiler& schemas_;
  const bool python_;
  const ExprId comma_;
  std::deque<Task> tasks_;
  std::map<const Json*, grammar::RuleId> rule_of_;
  std::map<std::string, grammar::RuleId> rule_of_text_;  // schemas that were merged have copies
  size_t compared_bytes_ = 0;
  grammar::RuleId any_ = grammar::kNoId;
};

// The characters of a name that a schema does not give.
grammar::CodePoints name_characters();

}  // namespace infer
