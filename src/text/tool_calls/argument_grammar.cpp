#include "src/text/tool_calls/argument_grammar.h"

#include <algorithm>

#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "src/text/grammar/json_text.h"
#include "src/text/tool_calls/call_pattern.h"

namespace infer {
namespace {

using Kind = ToolCallFormat::Kind;

}  // namespace

ArgumentGrammar::ArgumentGrammar(grammar::Rules& rules, const MarkerText& text, const ToolCallFormat& format,
                                 const ToolSet& tools, const Tool& tool, std::vector<std::string>* warnings,
                                 const grammar::Limits& limits)
    : rules_(rules),
      text_(text),
      format_(format),
      tools_(tools),
      tool_(tool),
      schemas_(rules, tool.parameters, tool.options, warnings, limits),
      values_(rules, text, format, schemas_) {}

grammar::ExprId ArgumentGrammar::arguments() {
  switch (format_.kind) {
    case Kind::kTagged:
      return tagged();
    case Kind::kBare:
      return bare();
    case Kind::kPython:
      return python();
    case Kind::kNone:
    case Kind::kObject:
    case Kind::kJson:
    case Kind::kHarmony:
      break;
  }
  return rules_.rule(schemas_.rule_of(tool_.parameters, tool_.place));
}

void ArgumentGrammar::finish() {
  values_.finish();
  schemas_.finish();
}

std::vector<ArgumentGrammar::Parameter> ArgumentGrammar::parameters(const Json& object) const {
  std::vector<Parameter> all;
  const auto required = object.find("required");
  for (const auto& [name, schema] : object["properties"].items()) {
    const bool needed =
        required != object.end() && std::any_of(required->begin(), required->end(), [&](const Json& one) {
          return one.is_string() && one.get_ref<const std::string&>() == name;
        });
    all.push_back({name, &schema, needed});
  }
  // Gemma's template sorts arguments by name.
  const auto by_name = [](const Parameter& a, const Parameter& b) { return a.name < b.name; };
  if (format_.kind == Kind::kBare) std::sort(all.begin(), all.end(), by_name);
  return all;
}

template <typename Write>
grammar::ExprId ArgumentGrammar::listed(const Json& object, ExprId separator, Write write) {
  std::vector<ExprId> items;
  std::string flags;
  for (const Parameter& parameter : parameters(object)) {
    items.push_back(write(parameter));
    flags += parameter.required ? grammar::kRequired : grammar::kOptional;
  }
  return rules_.listed(separator, items, std::move(flags), 0);
}

std::string ArgumentGrammar::place_of(const Parameter& parameter) const {
  return tool_.place + "/properties" + grammar::pointer_step(parameter.name);
}

grammar::ExprId ArgumentGrammar::json_value(const Parameter& parameter) {
  return rules_.rule(schemas_.rule_of(*parameter.schema, place_of(parameter)));
}

grammar::ExprId ArgumentGrammar::value(const Parameter& parameter) {
  return values_.value(*parameter.schema, place_of(parameter));
}

grammar::ExprId ArgumentGrammar::tagged() {
  const ExprId space = few_spaces(rules_);
  const Json* object = schemas_.as_object(tool_.parameters, tool_.place);
  const ExprId arguments =
      object ? listed(*object, space,
                      [&](const Parameter& parameter) {
                        return rules_.sequence({text_.literal(format_.spelling.argument_begin),
                                                rules_.bytes(parameter.name), tagged_value(parameter)});
                      })
             : any_tagged();
  return rules_.sequence({space, arguments, space});
}

// The value, after the key.
grammar::ExprId ArgumentGrammar::tagged_value(const Parameter& parameter) {
  const CallSpelling& spelling = format_.spelling;
  const ParameterKind kind = tools_.parameter(tool_.name, parameter.name);
  const std::string& end = spelling.argument_end;
  const auto json = [&] {
    return rules_.sequence({text_.literal(spelling.value), json_value(parameter), text_.literal(end)});
  };
  const auto any_string = [&] { return rules_.sequence({text_.literal(spelling.string_value), text_.up_to(end)}); };
  if (kind == ParameterKind::kJson) return json();
  if (kind == ParameterKind::kMixed) return format_.tags.typed ? rules_.choice({json(), any_string()}) : any_string();
  const ExprId text = tagged_text(parameter);
  if (text == grammar::kNoId) return any_string();
  return rules_.sequence({text_.literal(spelling.string_value), text, text_.literal(end)});
}

// The text of a string; kNoId: any.
grammar::ExprId ArgumentGrammar::tagged_text(const Parameter& parameter) {
  // A constrained text leaves out the first character of the end tag, so that it cannot contain the tag.
  const std::string_view end = trimmed_start(format_.spelling.argument_end);
  const auto tag = static_cast<uint8_t>(end.empty() ? '\0' : end.front());
  bool needs_tag = false;
  const grammar::Speller speller = [&](const grammar::CodePoints& set) {
    grammar::CodePoints rest = set.without({{tag, tag}});
    needs_tag = needs_tag || (rest.empty() && !set.empty());
    return rest.empty() ? rules_.never() : rules_.code_point(std::move(rest));
  };
  const std::string place = place_of(parameter);
  std::vector<ExprId> choices;
  for (const Json* one : schemas_.plain(*parameter.schema, place)) {
    if (one->contains("enum") || one->contains("const")) {
      for (const Json* value : schemas_.values(*one)) {
        if (value->is_string()) choices.push_back(rules_.bytes(value->get_ref<const std::string&>()));
      }
      continue;
    }
    const ExprId text = schemas_.string_text(*one, place, speller, speller(grammar::CodePoints::all()));
    if (text == grammar::kNoId) return text;
    choices.push_back(text);
  }
  if (!needs_tag) return rules_.choice(std::move(choices));
  schemas_.unenforced(place, concat("a pattern with ", static_cast<char>(tag)));
  return grammar::kNoId;
}

// Arguments with arbitrary names.
grammar::ExprId ArgumentGrammar::any_tagged() {
  const CallSpelling& spelling = format_.spelling;
  const ExprId name = rules_.repeat(rules_.code_point(name_characters()), 1, 64);
  const ExprId argument =
      rules_.sequence({text_.literal(spelling.argument_begin), name, text_.literal(spelling.string_value),
                       text_.up_to(spelling.argument_end), few_spaces(rules_)});
  return rules_.repeat(argument, 0, grammar::kUnbounded);
}

grammar::ExprId ArgumentGrammar::bare() {
  const Json* object = schemas_.as_object(tool_.parameters, tool_.place);
  if (!object) return values_.any();
  const auto write = [&](const Parameter& parameter) {
    return rules_.sequence({rules_.bytes(parameter.name + ":"), value(parameter)});
  };
  return rules_.sequence({rules_.bytes("{"), listed(*object, rules_.bytes(","), write), rules_.bytes("}")});
}

// Up to and with the parenthesis that closes the call.
grammar::ExprId ArgumentGrammar::python() {
  const ExprId comma = rules_.bytes(", "), close = rules_.bytes(")");
  const Json* object = schemas_.as_object(tool_.parameters, tool_.place);
  if (!object) {
    const ExprId key = rules_.repeat(rules_.code_point(name_characters()), 1, 64);
    const ExprId argument = rules_.sequence({key, rules_.bytes("="), values_.any()});
    return rules_.sequence({rules_.listed(comma, {argument}, {grammar::kRepeated}, 0), close});
  }
  const auto write = [&](const Parameter& parameter) {
    return rules_.sequence({rules_.bytes(parameter.name + "="), value(parameter)});
  };
  return rules_.sequence({listed(*object, comma, write), close});
}

}  // namespace infer
