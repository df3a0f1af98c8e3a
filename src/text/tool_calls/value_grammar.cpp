#include "src/text/tool_calls/value_grammar.h"

#include <algorithm>
#include <utility>

#include "ggml-like/message.h"

namespace infer {
namespace {

using grammar::ExprId;
using grammar::kUnbounded;
using Json = nlohmann::ordered_json;

constexpr size_t kMaxComparedBytes = size_t{16} << 20;
constexpr char kPythonQuotes[] = {'\'', '"'};

uint32_t count_of(const Json& schema, const char* name, uint32_t otherwise) {
  return schema.contains(name) ? static_cast<uint32_t>(schema[name].get<double>()) : otherwise;
}

uint32_t less(uint32_t count, uint32_t used) {
  return count == kUnbounded ? kUnbounded : count > used ? count - used : 0;
}

bool limits_nothing(const Json& schema) {
  constexpr const char* kLimits[] = {"items",
                                     "prefixItems",
                                     "additionalItems",
                                     "minItems",
                                     "maxItems",
                                     "properties",
                                     "required",
                                     "minProperties",
                                     "additionalProperties",
                                     "maxProperties",
                                     "minimum",
                                     "maximum",
                                     "exclusiveMinimum",
                                     "exclusiveMaximum",
                                     "multipleOf",
                                     "minLength",
                                     "maxLength",
                                     "pattern",
                                     "format"};
  return grammar::schema_types(schema) == grammar::kAllTypes &&
         std::none_of(std::begin(kLimits), std::end(kLimits), [&](const char* name) { return schema.contains(name); });
}

}  // namespace

grammar::CodePoints name_characters() { return {{'-', '.'}, {'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}; }

ValueGrammar::ValueGrammar(grammar::Rules& rules, const MarkerText& text, const ToolCallFormat& format,
                           grammar::SchemaCompiler& schemas)
    : rules_(rules),
      text_(text),
      format_(format),
      schemas_(schemas),
      python_(format.kind == ToolCallFormat::Kind::kPython),
      comma_(rules.bytes(python_ ? ", " : ",")) {}

ExprId ValueGrammar::value(const Json& schema, const std::string& place) {
  const Json& one = schemas_.followed(schema, place);
  const auto known = rule_of_.find(&one);
  if (known != rule_of_.end()) return rules_.rule(known->second);
  const std::string text = one.dump();
  compared_bytes_ += text.size();
  if (compared_bytes_ > kMaxComparedBytes)
    grammar::refuse_schema(place, "a schema that can be compiled", "a larger one");
  const auto [same, is_new] = rule_of_text_.try_emplace(text, grammar::kNoId);
  if (is_new) {
    same->second = rules_.declare(place);
    tasks_.push_back({same->second, &one, place});
  }
  rule_of_[&one] = same->second;
  return rules_.rule(same->second);
}

void ValueGrammar::finish() {
  while (!tasks_.empty()) {
    const Task task = std::move(tasks_.front());
    tasks_.pop_front();
    rules_.define(task.rule, compile(*task.schema, task.place));
  }
}

ExprId ValueGrammar::compile(const Json& schema, const std::string& place) {
  std::vector<ExprId> choices;
  for (const Json* one : schemas_.plain(schema, place)) choices.push_back(compile_plain(*one, place));
  return rules_.choice(std::move(choices));
}

ExprId ValueGrammar::compile_plain(const Json& schema, const std::string& place) {
  std::vector<ExprId> choices;
  if (schema.contains("enum") || schema.contains("const")) {
    for (const Json* value : schemas_.values(schema)) choices.push_back(constant(*value));
    return rules_.choice(std::move(choices));
  }
  if (limits_nothing(schema)) return any();
  const unsigned types = grammar::schema_types(schema);
  if (types & grammar::kObject) choices.push_back(object(schema, place));
  if (types & grammar::kArray) choices.push_back(array(schema, place));
  if (types & grammar::kString) choices.push_back(string(schema, place));
  const bool number = (types & grammar::kNumber) != 0;
  if (number || (types & grammar::kInteger)) choices.push_back(schemas_.compile_number(schema, place, !number));
  if (types & grammar::kBoolean) choices.insert(choices.end(), {word("true", "True"), word("false", "False")});
  if (types & grammar::kNull) choices.push_back(word("null", "None"));
  return rules_.choice(std::move(choices));
}

ExprId ValueGrammar::word(const char* json, const char* python) { return rules_.bytes(python_ ? python : json); }

ExprId ValueGrammar::bracketed(const char* open, ExprId inside, const char* close) {
  return rules_.sequence({rules_.bytes(open), inside, rules_.bytes(close)});
}

ExprId ValueGrammar::string(const Json& schema, const std::string& place) {
  if (!python_) {
    // A text that is limited does without the first character of the quote, so that it cannot contain one.
    const auto quote_begin = static_cast<uint8_t>(format_.quote.front());
    const grammar::Speller speller = [&](const grammar::CodePoints& set) {
      grammar::CodePoints rest = set.without({{quote_begin, quote_begin}});
      return rest.empty() ? rules_.never() : rules_.code_point(std::move(rest));
    };
    const ExprId inside = schemas_.string_text(schema, place, speller, speller(grammar::CodePoints::all()));
    const ExprId quote = text_.literal(format_.quote);
    return inside == grammar::kNoId ? any_string() : rules_.sequence({quote, inside, quote});
  }
  std::vector<ExprId> choices;
  for (const char quote : kPythonQuotes) {
    const grammar::Speller speller = [&](const grammar::CodePoints& set) { return python_character(set, quote); };
    const ExprId inside = schemas_.string_text(schema, place, speller, speller(grammar::CodePoints::all()));
    if (inside == grammar::kNoId) return any_string();
    const std::string mark(1, quote);
    choices.push_back(bracketed(mark.c_str(), inside, mark.c_str()));
  }
  return rules_.choice(std::move(choices));
}

ExprId ValueGrammar::python_character(const grammar::CodePoints& set, char quote) {
  const auto code = static_cast<uint8_t>(quote);
  std::vector<ExprId> choices;
  grammar::CodePoints plain = set.without({{0, 0x1F}, {code, code}, {'\\', '\\'}});
  if (!plain.empty()) choices.push_back(rules_.code_point(std::move(plain)));
  constexpr std::pair<char, const char*> kEscapes[] = {{'\'', "\\'"}, {'"', "\\\""}, {'\\', "\\\\"},
                                                       {'\n', "\\n"}, {'\r', "\\r"}, {'\t', "\\t"}};
  for (const auto& [character, escape] : kEscapes) {
    if (set.contains(static_cast<uint8_t>(character))) choices.push_back(rules_.bytes(escape));
  }
  return rules_.choice(std::move(choices));
}

// Python writes strings in single quotes, or in double ones.
ExprId ValueGrammar::any_string() {
  if (!python_) return rules_.sequence({text_.literal(format_.quote), text_.up_to(format_.quote)});
  std::vector<ExprId> choices;
  for (const char quote : kPythonQuotes) {
    const std::string mark(1, quote);
    const ExprId inside = rules_.repeat(python_character(grammar::CodePoints::all(), quote), 0, kUnbounded);
    choices.push_back(bracketed(mark.c_str(), inside, mark.c_str()));
  }
  return rules_.choice(std::move(choices));
}

ExprId ValueGrammar::quoted_constant(const std::string& text) {
  if (!python_) {
    const ExprId quote = text_.literal(format_.quote);
    return rules_.sequence({quote, rules_.bytes(text), quote});
  }
  std::vector<ExprId> choices;
  for (const char quote : kPythonQuotes) {
    std::string spelled(1, quote);
    for (const char c : text) {
      if (c == '\n') spelled += "\\n";
      else if (c == '\r') spelled += "\\r";
      else if (c == '\t') spelled += "\\t";
      else if (c == quote || c == '\\') spelled += {'\\', c};
      else spelled += c;
    }
    choices.push_back(rules_.bytes(spelled + quote));
  }
  return rules_.choice(std::move(choices));
}

ExprId ValueGrammar::constant(const Json& value) {
  if (value.is_string()) return quoted_constant(value.get_ref<const std::string&>());
  if (value.is_boolean()) return value.get<bool>() ? word("true", "True") : word("false", "False");
  if (value.is_null()) return word("null", "None");
  if (!value.is_structured()) return rules_.bytes(value.dump());
  std::vector<ExprId> items;
  for (const auto& [name, item] : value.items())
    items.push_back(value.is_array() ? constant(item) : rules_.sequence({key(name), constant(item)}));
  const std::string flags(items.size(), grammar::kRequired);
  const ExprId inside = rules_.listed(comma_, items, flags, 0);
  return value.is_array() ? bracketed("[", inside, "]") : bracketed("{", inside, "}");
}

ExprId ValueGrammar::key(const std::string& name) {
  if (!python_) return rules_.bytes(name + ":");
  return rules_.sequence({quoted_constant(name), rules_.bytes(": ")});
}

ExprId ValueGrammar::array(const Json& schema, const std::string& place) {
  const uint32_t min = count_of(schema, "minItems", 0), max = count_of(schema, "maxItems", kUnbounded);
  if (min > max) return rules_.never();
  if (schema.contains("uniqueItems") && schema["uniqueItems"] == true && max > 1)
    schemas_.unenforced(place, "uniqueItems");
  const bool old = schema.contains("items") && schema["items"].is_array();  // as in draft 7
  const char* first_name = old ? "items" : "prefixItems";
  const char* rest_name = old ? "additionalItems" : "items";
  std::vector<ExprId> parts;
  if (schema.contains(first_name)) {
    for (const Json& item : schema[first_name]) {
      if (parts.size() == max) break;
      const ExprId one = value(item, concat(place, "/", first_name, "/", parts.size()));
      parts.push_back(parts.empty() ? one : rules_.sequence({comma_, one}));
    }
  }
  const ExprId rest = schema.contains(rest_name) ? value(schema[rest_name], concat(place, "/", rest_name)) : any();
  const ExprId next = rules_.sequence({comma_, rest});
  const auto n = static_cast<uint32_t>(parts.size());
  if (n > 0) {
    parts.push_back(rules_.repeat(next, less(min, n), less(max, n)));
    return bracketed("[", rules_.partial(std::move(parts), min > n ? n + 1 : min), "]");
  }
  if (max == 0) return rules_.bytes("[]");
  const ExprId some = rules_.sequence({rest, rules_.repeat(next, less(min, 1), less(max, 1))});
  return bracketed("[", min == 0 ? rules_.optional(some) : some, "]");
}

ExprId ValueGrammar::object(const Json& schema, const std::string& place) {
  for (const char* name : {"minProperties", "maxProperties"}) {
    if (schema.contains(name) && count_of(schema, name, 0) != (name[1] == 'i' ? 0 : kUnbounded))
      schemas_.unenforced(place, name);
  }
  if (!schema.contains("properties") && !schema.contains("required")) return map(schema, place);
  std::vector<std::string> names, required;
  if (schema.contains("properties")) {
    for (const auto& [name, unused] : schema["properties"].items()) names.push_back(name);
  }
  if (schema.contains("required")) {
    for (const Json& name : schema["required"]) required.push_back(name);
  }
  for (const std::string& name : required) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (!python_) std::sort(names.begin(), names.end());  // as Gemma's template does
  std::vector<ExprId> items;
  std::string flags;
  for (const std::string& name : names) {
    const bool declared = schema.contains("properties") && schema["properties"].contains(name);
    const ExprId item = declared
                            ? value(schema["properties"][name], place + "/properties" + grammar::pointer_step(name))
                        : schema.contains("additionalProperties")
                            ? value(schema["additionalProperties"], place + "/additionalProperties")
                            : any();
    items.push_back(rules_.sequence({key(name), item}));
    const bool needed = std::find(required.begin(), required.end(), name) != required.end();
    flags += needed ? grammar::kRequired : grammar::kOptional;
  }
  return bracketed("{", rules_.listed(comma_, items, std::move(flags), 0), "}");
}

// An object whose keys are not declared.
ExprId ValueGrammar::map(const Json& schema, const std::string& place) {
  const bool limited = schema.contains("additionalProperties");
  if (limited && schema["additionalProperties"] == false) return rules_.bytes("{}");
  const ExprId item = limited ? value(schema["additionalProperties"], place + "/additionalProperties") : any();
  const ExprId name =
      python_ ? rules_.sequence({any_string(), rules_.bytes(": ")})
              : rules_.sequence({rules_.repeat(rules_.code_point(name_characters()), 1, 64), rules_.bytes(":")});
  return bracketed("{", rules_.listed(comma_, {rules_.sequence({name, item})}, {grammar::kRepeated}, 0), "}");
}

ExprId ValueGrammar::any() {
  if (any_ != grammar::kNoId) return rules_.rule(any_);
  any_ = rules_.declare("any value");
  const ExprId item = rules_.rule(any_);
  const ExprId list = bracketed("[", rules_.listed(comma_, {item}, {grammar::kRepeated}, 0), "]");
  rules_.define(any_, rules_.choice({any_string(), schemas_.any_number(), word("true", "True"), word("false", "False"),
                                     word("null", "None"), list, map(Json::object(), "")}));
  return item;
}

}  // namespace infer
