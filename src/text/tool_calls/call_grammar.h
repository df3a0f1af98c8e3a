// The tool calls that an answer may contain as rules of a grammar: the texts of the template, the names of the tools,
// and their arguments. Used by one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/text/ordered_json.h"
#include "src/text/tool_calls/argument_grammar.h"

namespace infer {

class CallGrammar {
 public:
  // `tools`: as for ToolSet, at least one; `place` names them in messages. A tool whose function has "strict" is held
  // to its whole schema; keywords of others that cannot be enforced are passed over and named in `warnings`. All
  // arguments must outlive this. Throws Error(kInvalidArgument) for a tool without a name.
  CallGrammar(grammar::Rules& rules, const MarkerText& text, const ToolCallFormat& format,
              const nlohmann::ordered_json& tools, std::vector<std::string>* warnings, const grammar::Limits& limits);

  // One call, or with `several` any number of them, from the first marker to the last. REQUIRES: format.kind is neither
  // kNone nor kHarmony.
  grammar::ExprId calls(bool several);
  // Text that is no call and may be followed by one, where `calls` is what calls() wrote; or nothing but the calls.
  grammar::ExprId content_and_calls(grammar::ExprId calls);
  // Content as it may stand beside calls: without their marker.
  grammar::ExprId content();
  // In the format of gpt-oss: the messages of an answer, where `final` is the text of its last one, unless that is a
  // call; kNoId: it must be one. REQUIRES: format.kind is kHarmony.
  grammar::ExprId messages(grammar::ExprId final);
  // After everything else. Throws Error(kInvalidArgument), which names the place.
  void finish();

 private:
  using ExprId = grammar::ExprId;

  ExprId call(size_t tool, const std::string& begin);
  ExprId call_object(size_t tool);
  ExprId id();
  // The text before the first call's name, id or object; it is a marker if it cannot stand in content by chance.
  std::string lead() const;
  bool has_marker() const;

  grammar::Rules& rules_;
  const MarkerText& text_;
  const ToolCallFormat& format_;
  const ToolSet set_;
  std::vector<ArgumentGrammar::Tool> tools_;
  std::vector<std::unique_ptr<ArgumentGrammar>> arguments_;  // of each tool
  std::vector<grammar::RuleId> argument_rules_;
};

}  // namespace infer
