// The tool calls that an answer may contain, as grammar rules: the template's texts, the names of the tools, and their
// arguments. Used by one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/text/ordered_json.h"
#include "src/text/tool_calls/argument_grammar.h"

namespace infer {

class CallGrammar {
 public:
  // `tools`: as for ToolSet, at least one; `place` names them in messages. A tool with "strict" is held to its whole
  // schema; for the others, keywords that cannot be enforced are ignored and named in `warnings`. All arguments must
  // outlive this. Throws Error(kInvalidArgument) for a tool without a name.
  CallGrammar(grammar::Rules& rules, const MarkerText& text, const ToolCallFormat& format,
              const nlohmann::ordered_json& tools, std::vector<std::string>* warnings, const grammar::Limits& limits);

  // One call or, if `several`, any number of them, from the first marker to the last. REQUIRES: format.kind is neither
  // kNone nor kHarmony.
  grammar::ExprId calls(bool several);
  // Content, optionally followed by `calls` (the result of calls()); or only the calls.
  grammar::ExprId content_and_calls(grammar::ExprId calls);
  // Content next to calls: any text without their marker.
  grammar::ExprId content();
  // For gpt-oss: the messages of an answer. The last one is either a call or has the text `final`; kNoId: it must be a
  // call. REQUIRES: format.kind is kHarmony.
  grammar::ExprId messages(grammar::ExprId final);
  // Call this last. Throws Error(kInvalidArgument) naming the place.
  void finish();

 private:
  using ExprId = grammar::ExprId;

  ExprId call(size_t tool, const std::string& begin);
  ExprId call_object(size_t tool);
  ExprId id();
  // The text before the first call's name, id or object; it is a marker if it cannot occur in content by chance.
  std::string lead() const;
  bool has_marker() const;

  grammar::Rules& rules_;
  const MarkerText& text_;
  const ToolCallFormat& format_;
  const ToolSet set_;
  std::vector<ArgumentGrammar::Tool> tools_;
  std::vector<std::unique_ptr<ArgumentGrammar>> arguments_;  // one per tool
  std::vector<grammar::RuleId> argument_rules_;
};

}  // namespace infer
