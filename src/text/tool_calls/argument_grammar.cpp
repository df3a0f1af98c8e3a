#include "src/text/tool_calls/argument_grammar.h"

#include <algorithm>

#include "ggml-like/error.h"
#include "src/text/grammar/json_text.h"

namespace infer {
namespace {

using Kind = ToolCallFormat::Kind;

// The characters of a parameter name, where the schema does not declare names.
grammar::CodePoints name_characters() { return {{'-', '.'}, {'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}; }

}  // namespace

ArgumentGrammar::ArgumentGrammar(grammar::Rules& rules, const MarkerText& text, const ToolCallFormat& format,
                                 const ToolSet& tools, const Tool& tool, std::vector<std::string>* warnings,
                                 const grammar::Limits& limits)
    : rules_(rules),
      text_(text),
      format_(format),
      tools_(tools),
      tool_(tool),
      schemas_(rules, tool.parameters, tool.options, warnings, limits) {}

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

void ArgumentGrammar::finish() { schemas_.finish(); }

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

std::vector<std::string> ArgumentGrammar::allowed_strings(const Json& schema) {
  std::vector<std::string> strings;
  if (!schema.is_object()) return strings;
  if (const auto value = schema.find("const"); value != schema.end() && value->is_string()) {
    strings.push_back(*value);
    return strings;
  }
  const auto values = schema.find("enum");
  if (values == schema.end() || !values->is_array()) return strings;
  for (const Json& value : *values) {
    if (value.is_string()) strings.push_back(value);
  }
  return strings;
}

grammar::ExprId ArgumentGrammar::json_value(const Parameter& parameter) {
  return rules_.rule(
      schemas_.rule_of(*parameter.schema, tool_.place + "/properties" + grammar::pointer_step(parameter.name)));
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
  const auto string = [&](const std::vector<std::string>& allowed) {
    if (allowed.empty()) return rules_.sequence({text_.literal(spelling.string_value), text_.up_to(end)});
    std::vector<ExprId> values;
    for (const std::string& value : allowed) values.push_back(rules_.bytes(value));
    return rules_.sequence(
        {text_.literal(spelling.string_value), rules_.choice(std::move(values)), text_.literal(end)});
  };
  if (kind == ParameterKind::kJson) return json();
  if (kind == ParameterKind::kString) return string(allowed_strings(*parameter.schema));
  return format_.tags.typed ? rules_.choice({json(), string({})}) : string({});
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
  if (!object) return any_bare();
  const auto write = [&](const Parameter& parameter) {
    const ParameterKind kind = tools_.parameter(tool_.name, parameter.name);
    const unsigned types =
        parameter.schema->is_object() ? grammar::schema_types(*parameter.schema) : grammar::kAllTypes;
    const bool scalar = (types & (grammar::kString | grammar::kArray | grammar::kObject)) == 0;
    const ExprId value = kind == ParameterKind::kString ? bare_string(allowed_strings(*parameter.schema))
                         : scalar                       ? json_value(parameter)
                                                        : any_bare();
    return rules_.sequence({rules_.bytes(parameter.name + ":"), value});
  };
  return rules_.sequence({rules_.bytes("{"), listed(*object, rules_.bytes(","), write), rules_.bytes("}")});
}

grammar::ExprId ArgumentGrammar::bare_string(const std::vector<std::string>& allowed) {
  const ExprId quote = text_.literal(format_.quote);
  if (allowed.empty()) return rules_.sequence({quote, text_.up_to(format_.quote)});
  std::vector<ExprId> values;
  for (const std::string& value : allowed) values.push_back(rules_.bytes(value));
  return rules_.sequence({quote, rules_.choice(std::move(values)), quote});
}

// Any value: a string, a number, a JSON literal, a list or an object.
grammar::ExprId ArgumentGrammar::any_bare() {
  const grammar::RuleId value = rules_.declare(tool_.place);
  const ExprId item = rules_.rule(value), comma = rules_.bytes(",");
  const ExprId key = rules_.repeat(rules_.code_point(name_characters()), 1, 64);
  const ExprId member = rules_.sequence({key, rules_.bytes(":"), item});
  const auto bracketed = [&](const char* open, ExprId inside, const char* close) {
    return rules_.sequence(
        {rules_.bytes(open), rules_.listed(comma, {inside}, {grammar::kRepeated}, 0), rules_.bytes(close)});
  };
  rules_.define(value,
                rules_.choice({bare_string({}), schemas_.any_number(), rules_.bytes("true"), rules_.bytes("false"),
                               rules_.bytes("null"), bracketed("[", item, "]"), bracketed("{", member, "}")}));
  return item;
}

grammar::ExprId ArgumentGrammar::python() {
  const ExprId comma = rules_.bytes(", ");
  const Json* object = schemas_.as_object(tool_.parameters, tool_.place);
  if (!object) {
    const ExprId key = rules_.repeat(rules_.code_point(name_characters()), 1, 64);
    const ExprId argument = rules_.sequence({key, rules_.bytes("="), any_python()});
    return rules_.listed(comma, {argument}, {grammar::kRepeated}, 0);
  }
  return listed(*object, comma, [&](const Parameter& parameter) {
    const ParameterKind kind = tools_.parameter(tool_.name, parameter.name);
    const unsigned types =
        parameter.schema->is_object() ? grammar::schema_types(*parameter.schema) : grammar::kAllTypes;
    ExprId value = 0;
    if (kind == ParameterKind::kString) value = python_string(allowed_strings(*parameter.schema));
    else if (types == grammar::kBoolean) value = rules_.choice({rules_.bytes("True"), rules_.bytes("False")});
    else if ((types & ~(grammar::kNumber | grammar::kInteger)) == 0) value = json_value(parameter);
    else value = any_python();
    return rules_.sequence({rules_.bytes(parameter.name + "="), value});
  });
}

// A string in single quotes, as Python itself writes them, or in double quotes.
grammar::ExprId ArgumentGrammar::python_string(const std::vector<std::string>& allowed) {
  std::vector<ExprId> quoted;
  for (const char quote : {'\'', '"'}) {
    const ExprId mark = rules_.bytes(std::string(1, quote));
    grammar::CodePoints plain = {{0x20, grammar::kMaxCodePoint}};
    const auto code = static_cast<uint32_t>(quote);
    plain = plain.without({{code, code}, {'\\', '\\'}});
    const ExprId escape = rules_.sequence(
        {rules_.bytes("\\"),
         rules_.code_point({{'"', '"'}, {'\'', '\''}, {'\\', '\\'}, {'n', 'n'}, {'r', 'r'}, {'t', 't'}})});
    ExprId inside = rules_.repeat(rules_.choice({rules_.code_point(plain), escape}), 0, grammar::kUnbounded);
    if (!allowed.empty()) {
      std::vector<ExprId> values;
      for (const std::string& value : allowed) {
        std::string spelled;
        for (const char c : value) spelled += c == quote || c == '\\' ? std::string{'\\', c} : std::string(1, c);
        values.push_back(rules_.bytes(spelled));
      }
      inside = rules_.choice(std::move(values));
    }
    quoted.push_back(rules_.sequence({mark, inside, mark}));
  }
  return rules_.choice(std::move(quoted));
}

grammar::ExprId ArgumentGrammar::any_python() {
  const grammar::RuleId value = rules_.declare(tool_.place);
  const ExprId item = rules_.rule(value), comma = rules_.bytes(", ");
  const ExprId member = rules_.sequence({python_string({}), rules_.bytes(": "), item});
  const auto bracketed = [&](const char* open, ExprId inside, const char* close) {
    return rules_.sequence(
        {rules_.bytes(open), rules_.listed(comma, {inside}, {grammar::kRepeated}, 0), rules_.bytes(close)});
  };
  rules_.define(value,
                rules_.choice({python_string({}), schemas_.any_number(), rules_.bytes("True"), rules_.bytes("False"),
                               rules_.bytes("None"), bracketed("[", item, "]"), bracketed("{", member, "}")}));
  return item;
}

}  // namespace infer
