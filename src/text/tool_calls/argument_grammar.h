// The arguments of a call to one tool as grammar expressions, in each form that templates write. JSON arguments follow
// the whole schema of the parameters. Arguments between tags, in Python syntax or with unquoted keys follow the names,
// the order and the presence of the parameters, and each value follows its schema. Used by one thread.
#pragma once

#include <string>
#include <vector>

#include "src/text/grammar/schema_compiler.h"
#include "src/text/ordered_json.h"
#include "src/text/tool_calls/marker_text.h"
#include "src/text/tool_calls/tool_call_format.h"
#include "src/text/tool_calls/tool_set.h"
#include "src/text/tool_calls/value_grammar.h"

namespace infer {

class ArgumentGrammar {
 public:
  // A tool's name and the schema of its parameters. All arguments must outlive this.
  struct Tool {
    std::string name;
    nlohmann::ordered_json parameters;
    grammar::SchemaOptions options;
    std::string place;  // of the schema, for messages
  };
  ArgumentGrammar(grammar::Rules& rules, const MarkerText& text, const ToolCallFormat& format, const ToolSet& tools,
                  const Tool& tool, std::vector<std::string>* warnings, const grammar::Limits& limits);

  // In the form of format.kind, which is neither kNone nor kHarmony (whose arguments are JSON, as with kJson).
  grammar::ExprId arguments();
  // Writes the rules of the schemas. Throws Error(kInvalidArgument) naming the tool and the place.
  void finish();

 private:
  using ExprId = grammar::ExprId;
  using Json = nlohmann::ordered_json;

  struct Parameter {
    std::string name;
    const Json* schema;
    bool required;
  };
  std::vector<Parameter> parameters(const Json& object) const;
  // The parameters in order, each written by `write`.
  template <typename Write>
  ExprId listed(const Json& object, ExprId separator, Write write);
  std::string place_of(const Parameter& parameter) const;
  ExprId json_value(const Parameter& parameter);
  ExprId value(const Parameter& parameter);

  ExprId tagged();
  ExprId tagged_value(const Parameter& parameter);
  ExprId tagged_text(const Parameter& parameter);
  ExprId any_tagged();
  ExprId bare();
  ExprId python();

  grammar::Rules& rules_;
  const MarkerText& text_;
  const ToolCallFormat& format_;
  const ToolSet& tools_;
  const Tool& tool_;
  grammar::SchemaCompiler schemas_;
  ValueGrammar values_;
};

}  // namespace infer
