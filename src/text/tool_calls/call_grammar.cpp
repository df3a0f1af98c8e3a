#include "src/text/tool_calls/call_grammar.h"

#include <algorithm>

#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "src/text/grammar/json_text.h"
#include "src/text/tool_calls/call_pattern.h"
#include "src/text/tool_calls/template_tokens.h"

namespace infer {
namespace {

using grammar::ExprId;
using Kind = ToolCallFormat::Kind;
using Json = nlohmann::ordered_json;

constexpr size_t kMaxToolName = 128;
constexpr char kPlaces[] = {kIdPlace, kNamePlace, '\0'};
constexpr size_t kLongLead = 6;  // bytes; a text this long does not occur in content by chance

// nullptr: absent or null.
const Json* given(const Json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

ArgumentGrammar::Tool read_tool(const Json& tool, size_t index) {
  const Json* function = given(tool, "function");
  const Json& of = function ? *function : tool;
  const std::string place = concat("tools[", index, function ? "].function" : "]");
  const Json* name = given(of, "name");
  if (!name || !name->is_string() || name->get_ref<const std::string&>().empty() ||
      name->get_ref<const std::string&>().size() > kMaxToolName)
    throw Error(ErrorCode::kInvalidArgument, concat(place, ".name: expected a name of 1 to ", kMaxToolName,
                                                    " bytes, found ", name ? "another" : "none"));
  ArgumentGrammar::Tool result{*name, Json{{"type", "object"}}, {}, place + ".parameters#"};
  if (const Json* parameters = given(of, "parameters"); parameters && !parameters->empty())
    result.parameters = *parameters;
  // Clients may omit the type, but the arguments of a call are always an object.
  if (result.parameters.is_object() && !result.parameters.contains("type")) result.parameters["type"] = "object";
  const Json* strict = given(of, "strict");
  result.options.lenient = !(strict && *strict == true);
  return result;
}

}  // namespace

CallGrammar::CallGrammar(grammar::Rules& rules, const MarkerText& text, const ToolCallFormat& format,
                         const nlohmann::ordered_json& tools, std::vector<std::string>* warnings,
                         const grammar::Limits& limits)
    : rules_(rules), text_(text), format_(format), set_(tools) {
  for (const Json& tool : tools) tools_.push_back(read_tool(tool, tools_.size()));
  for (const ArgumentGrammar::Tool& tool : tools_) {
    arguments_.push_back(std::make_unique<ArgumentGrammar>(rules_, text_, format_, set_, tool, warnings, limits));
    argument_rules_.push_back(rules_.declare("the arguments of " + tool.name));
  }
}

void CallGrammar::finish() {
  for (size_t i = 0; i < tools_.size(); ++i) {
    rules_.define(argument_rules_[i], arguments_[i]->arguments());
    arguments_[i]->finish();
  }
}

std::string CallGrammar::lead() const {
  const std::string text = format_.spelling.series_begin + format_.spelling.call_begin + format_.spelling.after_name;
  return std::string(trimmed(text.substr(0, text.find_first_of(kPlaces))));
}

bool CallGrammar::has_marker() const { return contains_tag(lead()) || lead().size() >= kLongLead; }

ExprId CallGrammar::id() {
  const ExprId character = rules_.code_point({{'0', '9'}, {'A', 'Z'}, {'a', 'z'}});
  if (format_.short_ids) return rules_.repeat(character, 9, 9);
  return rules_.repeat(rules_.code_point({{'-', '-'}, {'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}), 1, 40);
}

// {"name": "f", "arguments": {...}}, possibly with an id before or after.
ExprId CallGrammar::call_object(size_t tool) {
  const ExprId space = grammar::json_space(rules_, false);
  const auto member = [&](const std::string& key, ExprId value) {
    return rules_.sequence({rules_.bytes("\"" + grammar::spell(key) + "\""), space, rules_.bytes(":"), space, value});
  };
  const ExprId comma = rules_.sequence({space, rules_.bytes(","), space});
  const ExprId name = member(format_.keys.name, rules_.bytes("\"" + grammar::spell(tools_[tool].name) + "\""));
  const ExprId arguments = member(format_.keys.arguments, rules_.rule(argument_rules_[tool]));
  ExprId call = rules_.sequence({name, comma, arguments});
  if (!format_.keys.id.empty()) {
    const ExprId written = member(format_.keys.id, rules_.sequence({rules_.bytes("\""), id(), rules_.bytes("\"")}));
    call = rules_.sequence(
        {rules_.optional(rules_.sequence({written, comma})), call, rules_.optional(rules_.sequence({comma, written}))});
  }
  return rules_.sequence({rules_.bytes("{"), space, call, space, rules_.bytes("}")});
}

// `begin`: the text before the call, with placeholders for an id and the name.
ExprId CallGrammar::call(size_t tool, const std::string& begin) {
  std::vector<ExprId> parts;
  const bool names = begin.find(kNamePlace) != std::string::npos;
  for (size_t at = 0; at < begin.size();) {
    const size_t place = std::min(begin.find_first_of(kPlaces, at), begin.size());
    if (place > at) parts.push_back(text_.literal(std::string_view(begin).substr(at, place - at)));
    if (place == begin.size()) break;
    if (begin[place] == kNamePlace) {
      parts.push_back(rules_.bytes(tools_[tool].name));
    } else if (names) {
      parts.push_back(id());
    } else {
      // An id that contains the name, as Kimi's templates write them.
      parts.push_back(rules_.bytes("functions." + tools_[tool].name + ":"));
      parts.push_back(rules_.repeat(rules_.code_point({{'0', '9'}}), 1, 4));
    }
    at = place + 1;
  }
  parts.push_back(format_.kind == Kind::kObject ? call_object(tool) : rules_.rule(argument_rules_[tool]));
  return rules_.sequence(std::move(parts));
}

ExprId CallGrammar::calls(bool several) {
  const CallSpelling& spelling = format_.spelling;
  const auto any_tool = [&](const std::string& begin) {
    std::vector<ExprId> choices;
    for (size_t i = 0; i < tools_.size(); ++i) choices.push_back(call(i, begin));
    return rules_.choice(std::move(choices));
  };
  const std::string first = spelling.series_begin + spelling.call_begin + spelling.after_name;
  std::vector<ExprId> parts = {any_tool(std::string(trimmed_start(first)))};
  if (several && spelling.several) {
    const ExprId another = any_tool(spelling.call_end + spelling.separator + spelling.call_begin + spelling.after_name);
    parts.push_back(rules_.repeat(another, 0, grammar::kUnbounded));
  }
  // The text after the last call is required if it closes something that was opened; otherwise it is optional.
  const std::string end = spelling.call_end + spelling.series_end;
  const std::string_view all = text_.before_end(end);
  const bool opened = !trimmed(spelling.series_begin).empty();
  const std::string_view needed = opened ? all : text_.before_end(spelling.call_end);
  parts.push_back(text_.literal(needed));
  if (needed.size() < all.size()) parts.push_back(rules_.optional(text_.literal(all.substr(needed.size()))));
  parts.push_back(few_spaces(rules_));
  return rules_.sequence(std::move(parts));
}

ExprId CallGrammar::content() {
  std::vector<std::string> marker_words;
  if (has_marker()) marker_words.push_back(lead());
  const ExprId text = rules_.without(std::move(marker_words));
  std::vector<ExprId> markers;
  for (const std::string& marker : format_.ignored) markers.push_back(text_.literal(marker));
  if (markers.empty()) return text;
  return rules_.sequence(
      {text, rules_.repeat(rules_.sequence({rules_.choice(std::move(markers)), text}), 0, grammar::kUnbounded)});
}

ExprId CallGrammar::content_and_calls(ExprId calls) {
  if (has_marker()) return rules_.sequence({content(), rules_.optional(calls)});
  // Without a marker, a call is the whole answer, and begins with a tool's name.
  std::vector<std::string> begins;
  const CallSpelling& spelling = format_.spelling;
  for (const ArgumentGrammar::Tool& tool : tools_) {
    std::string begin(trimmed_start(spelling.series_begin + spelling.call_begin + spelling.after_name));
    if (format_.kind == Kind::kObject) {
      for (const char* space : {"", " "}) {
        begins.push_back(begin + "{\"" + format_.keys.name + "\":" + space + "\"" + grammar::spell(tool.name) + "\"");
      }
      continue;
    }
    for (size_t at = 0; (at = begin.find(kNamePlace, at)) != std::string::npos; at += tool.name.size())
      begin.replace(at, 1, tool.name);
    begins.push_back(begin);
  }
  return rules_.choice({rules_.not_beginning(std::move(begins)), calls});
}

ExprId CallGrammar::messages(ExprId final) {
  const auto text = [&](const char* written) { return text_.literal(written); };
  const std::string next = "<|start|>assistant";
  const auto other = [&](const char* channel) {
    return rules_.sequence(
        {text("<|channel|>"), text(channel), text("<|message|>"), text_.up_to("<|end|>"), text_.literal(next)});
  };
  const ExprId before = rules_.repeat(rules_.choice({other("analysis"), other("commentary")}), 0, grammar::kUnbounded);
  const ExprId json = rules_.optional(rules_.sequence(
      {rules_.optional(text(" ")), rules_.optional(text("<|constrain|>")), rules_.optional(text("json"))}));
  std::vector<ExprId> last;
  if (final != grammar::kNoId) {
    last.push_back(rules_.sequence({text("<|channel|>final"), json, text("<|message|>"), final}));
  }
  for (size_t i = 0; i < tools_.size(); ++i) {
    const std::string to = " to=functions." + tools_[i].name;
    const ExprId header =
        rules_.choice({text_.literal("<|channel|>commentary" + to), text_.literal(to + "<|channel|>commentary")});
    last.push_back(rules_.sequence({header, json, text("<|message|>"), rules_.rule(argument_rules_[i])}));
  }
  return rules_.sequence({before, rules_.choice(std::move(last))});
}

}  // namespace infer
