#include "src/text/grammar/schema_compiler.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "src/text/grammar/json_text.h"
#include "src/text/grammar/schema_formats.h"

namespace infer::grammar {
namespace {

uint32_t count_of(const Json& schema, const char* name, uint32_t otherwise) {
  return schema.contains(name) ? static_cast<uint32_t>(schema[name].get<double>()) : otherwise;
}

bool has_any(const Json& schema, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* name) { return schema.contains(name); });
}

}  // namespace

SchemaCompiler::SchemaCompiler(Rules& rules, const Json& root, const SchemaOptions& options,
                               std::vector<std::string>* warnings, const Limits& limits)
    : options_(options),
      warnings_(warnings),
      limits_(limits),
      document_(root, [this](const std::string& place, const std::string& keyword) { unenforced(place, keyword); }),
      rules_(rules) {
  digit_ = rules_.code_point({{'0', '9'}});
  character_ = any_character(rules_);
  space_ = json_space(rules_, options_.compact);
}

void SchemaCompiler::unenforced(const std::string& place, const std::string& keyword) {
  if (!options_.lenient) refuse_schema(place, "keywords that can be enforced", keyword.substr(0, 60));
  const std::string warning = concat(place, ": ", keyword, " is not enforced");
  if (warnings_ && std::find(warnings_->begin(), warnings_->end(), warning) == warnings_->end())
    warnings_->push_back(warning);
}

void SchemaCompiler::finish() {
  while (!tasks_.empty()) {
    const Task task = std::move(tasks_.front());
    tasks_.pop_front();
    in_merged_ = task.merged;
    rules_.define(task.rule, compile(task));
    if (rules_.n_exprs() > limits_.expressions)
      refuse_schema(task.place, concat("a schema of at most ", grouped(limits_.expressions), " parts"), "a larger one");
  }
}

Grammar schema_grammar(const Json& root, const SchemaOptions& options, std::vector<std::string>* warnings,
                       const Limits& limits) {
  Rules rules;
  SchemaCompiler compiler(rules, root, options, warnings, limits);
  rules.set_root(compiler.rule_of(root, "#"));
  compiler.finish();
  return Grammar(rules, limits);
}

const Json* SchemaCompiler::as_object(const Json& schema, const std::string& place) {
  if (!schema.is_object()) return nullptr;
  const Json* one = &schema;
  if (has_any(schema, {"$ref", "allOf", "anyOf", "oneOf"})) {
    const std::vector<const Json*> all = document_.alternatives(schema, place);
    if (all.size() != 1) return nullptr;
    one = all.front();
  }
  document_.check(*one, place);
  return one->contains("properties") && (*one)["properties"].is_object() ? one : nullptr;
}

const Json& SchemaCompiler::followed(const Json& schema, const std::string& place) const {
  constexpr int kMaxSteps = 50;
  const Json* one = &schema;
  for (int step = 0; one->is_object() && SchemaDocument::has_only(*one, "$ref"); ++step) {
    document_.check(*one, place);
    if (step == kMaxSteps) refuse_schema(place, "references that lead somewhere", "a cycle, or more than 50 in a row");
    one = document_.target(*one, place);
  }
  return *one;
}

std::vector<const Json*> SchemaCompiler::plain(const Json& schema, const std::string& place) {
  if (schema.is_object() && !has_any(schema, {"$ref", "allOf", "anyOf", "oneOf"})) {
    document_.check(schema, place);
    return {&schema};
  }
  std::vector<const Json*> all = document_.alternatives(schema, place);
  for (const Json* one : all) document_.check(*one, place);
  return all;
}

RuleId SchemaCompiler::rule_of(const Json& schema, const std::string& place) {
  const auto known = rule_of_.find(&schema);
  if (known != rule_of_.end()) return known->second;
  RuleId rule = kNoId;
  if (in_merged_) {
    const std::string text = schema.dump();
    compared_bytes_ += text.size();
    if (compared_bytes_ > limits_.source_bytes * 4)
      refuse_schema(place, "a schema whose allOf can be resolved", "a larger one");
    const auto same = rule_of_text_.find(text);
    if (same != rule_of_text_.end()) return rule_of_[&schema] = same->second;
    rule = rule_of_text_[text] = rules_.declare(place);
  } else {
    rule = rules_.declare(place);
  }
  rule_of_[&schema] = rule;
  tasks_.push_back({rule, &schema, place, in_merged_});
  return rule;
}

ExprId SchemaCompiler::compile(const Task& task) {
  const auto& [rule, schema, place, merged] = task;
  document_.check(*schema, place);
  if (schema->is_boolean()) return schema->get<bool>() ? any_value() : rules_.never();
  if (SchemaDocument::has_only(*schema, "$ref")) {
    const bool before = std::exchange(in_merged_, false);
    const ExprId expr =
        value_of(*document_.target(*schema, place), (*schema)["$ref"].get<std::string>().substr(0, 200));
    in_merged_ = before;
    return expr;
  }
  if (SchemaDocument::has_only(*schema, "anyOf")) return compile_branches((*schema)["anyOf"], place + "/anyOf");
  if (SchemaDocument::has_only(*schema, "oneOf")) {
    document_.require_disjoint((*schema)["oneOf"], place + "/oneOf");
    return compile_branches((*schema)["oneOf"], place + "/oneOf");
  }
  if (!has_any(*schema, {"$ref", "allOf", "anyOf", "oneOf"})) return compile_plain(*schema, place);
  in_merged_ = true;
  std::vector<ExprId> choices;
  for (const Json* one : document_.alternatives(*schema, place)) choices.push_back(compile_plain(*one, place));
  return rules_.choice(std::move(choices));
}

ExprId SchemaCompiler::compile_branches(const Json& branches, const std::string& place) {
  std::vector<ExprId> choices;
  for (size_t i = 0; i < branches.size(); ++i) choices.push_back(value_of(branches[i], concat(place, "/", i)));
  return rules_.choice(std::move(choices));
}

// REQUIRES: no applicators.
ExprId SchemaCompiler::compile_plain(const Json& schema, const std::string& place) {
  if (schema.contains("enum") || schema.contains("const")) return compile_values(schema);
  const unsigned types = schema_types(schema);
  const bool array_keywords =
      has_any(schema, {"items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems"});
  const bool object_keywords =
      has_any(schema, {"properties", "required", "additionalProperties", "minProperties", "maxProperties"});
  const bool number_keywords =
      has_any(schema, {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"});
  const bool string_keywords = has_any(schema, {"minLength", "maxLength", "pattern", "format"});
  if (types == kAllTypes && !array_keywords && !object_keywords && !number_keywords && !string_keywords)
    return any_value();
  std::vector<ExprId> choices;
  if (types & kObject) choices.push_back(compile_object(schema, place));
  if (types & kArray) choices.push_back(compile_array(schema, place));
  if (types & kString) choices.push_back(compile_string(schema, place));
  if (types & kNumber) choices.push_back(compile_number(schema, place, false));
  else if (types & kInteger) choices.push_back(compile_number(schema, place, true));
  if (types & kBoolean) choices.push_back(rules_.choice({token("true"), token("false")}));
  if (types & kNull) choices.push_back(token("null"));
  return rules_.choice(std::move(choices));
}

std::vector<const Json*> SchemaCompiler::values(const Json& schema) {
  Json rest = Json::object();
  for (const auto& [name, value] : schema.items()) {
    if (name != "enum" && name != "const") rest[name] = value;
  }
  std::vector<const Json*> values;
  if (schema.contains("const")) values.push_back(&schema["const"]);
  else
    for (const Json& value : schema["enum"]) values.push_back(&value);
  const auto keep = [&](auto allowed) {
    values.erase(std::remove_if(values.begin(), values.end(), [&](const Json* v) { return !allowed(*v); }),
                 values.end());
  };
  if (schema.contains("const") && schema.contains("enum")) {
    const Json& all = schema["enum"];
    keep([&](const Json& v) { return std::find(all.begin(), all.end(), v) != all.end(); });
  }
  if (rest.contains("type")) {
    const unsigned types = schema_types(rest);
    keep([&](const Json& v) { return (type_bits(v) & types) != 0; });
    rest.erase("type");
  }
  bool limited = false;
  for (const auto& [name, value] : rest.items())
    limited = limited || SchemaDocument::has_only(Json{{"enum", {}}, {name, value}}, "enum") == false;
  if (limited) {
    // The merged rest counts as a separate place; its references still resolve in the same document.
    SchemaOptions options = options_;
    options.compact = true;
    const Grammar grammar = schema_grammar(rest, options, nullptr, limits_);
    keep([&](const Json& v) { return grammar.match(v.dump()) == Match::kAccept; });
  }
  return values;
}

ExprId SchemaCompiler::compile_values(const Json& schema) {
  std::vector<ExprId> choices;
  for (const Json* value : values(schema)) choices.push_back(constant(*value));
  return rules_.choice(std::move(choices));
}

ExprId SchemaCompiler::constant(const Json& value) {
  if (value.is_string()) return token("\"" + spell(value.get_ref<const std::string&>()) + "\"");
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (number == static_cast<double>(static_cast<int64_t>(std::clamp(number, -1e15, 1e15))))
      return token(std::to_string(static_cast<int64_t>(number)));
  }
  if (!value.is_structured()) return token(value.dump());
  std::vector<ExprId> items;
  if (value.is_array()) {
    for (const Json& item : value) items.push_back(constant(item));
  } else {
    for (const auto& [key, item] : value.items()) items.push_back(member(token(spell(key)), constant(item)));
  }
  const std::string flags(items.size(), kRequired);
  const ExprId inside = rules_.listed(separator(), items, flags, 0);
  return value.is_array() ? bracketed("[", inside, "]") : bracketed("{", inside, "}");
}

ExprId SchemaCompiler::compile_string(const Json& schema, const std::string& place) {
  const Speller speller = [this](const CodePoints& set) { return spelled_character(rules_, set); };
  const ExprId inside = string_text(schema, place, speller, character_);
  return inside == kNoId ? any_string() : quoted(inside);
}

ExprId SchemaCompiler::string_text(const Json& schema, const std::string& place, const Speller& speller,
                                   ExprId any_character) {
  const LengthRange length = {count_of(schema, "minLength", 0), count_of(schema, "maxLength", kUnbounded)};
  if (length.min > length.max) return rules_.never();
  const bool has_length = length.min > 0 || length.max != kUnbounded;
  if (schema.contains("format")) {
    const std::string& name = schema["format"].get_ref<const std::string&>();
    const SchemaFormat format = schema_format(name);
    if (format.kind == SchemaFormat::Kind::kUnsupported) unenforced(place, concat("format ", name));
    if (format.kind == SchemaFormat::Kind::kPattern) {
      if (schema.contains("pattern")) unenforced(place, "pattern beside format");
      if (format.shortest < length.min || length.max != kUnbounded) unenforced(place, "length beside format");
      return parse_regex(rules_, "^(" + format.pattern + ")$", {}, place, speller);
    }
  }
  if (schema.contains("pattern")) {
    const std::string where = concat("[schema] ", place, "/pattern");
    try {
      return parse_regex(rules_, schema["pattern"].get_ref<const std::string&>(), length, where, speller);
    } catch (const Error&) {
      if (!options_.lenient) throw;
      unenforced(place, "pattern");
    }
  }
  return has_length ? rules_.repeat(any_character, length.min, length.max) : kNoId;
}

ExprId SchemaCompiler::compile_number(const Json& schema, const std::string& place, bool integer) {
  if (schema.contains("multipleOf")) {
    const Json& step = schema["multipleOf"];
    if (step.get<double>() <= 0) refuse_schema(place + "/multipleOf", "a number above 0", step.dump());
    if (step.get<double>() != 1) unenforced(place, "multipleOf");
    else integer = true;
  }
  NumberRange range;
  const auto read = [&](const char* name, std::optional<Decimal>& bound) {
    if (!schema.contains(name)) return false;
    bound = parse_decimal(schema[name].dump());
    if (!bound)
      refuse_schema(place + "/" + name, "a number of at most 16 digits without exponent", schema[name].dump());
    return true;
  };
  const auto value = [](const Decimal& d) { return static_cast<double>(d.scaled) / std::pow(10.0, d.digits); };
  read("minimum", range.min);
  read("maximum", range.max);
  std::optional<Decimal> above, below;
  if (read("exclusiveMinimum", above) && (!range.min || value(*above) >= value(*range.min)))
    range.min = above, range.min_exclusive = true;
  if (read("exclusiveMaximum", below) && (!range.max || value(*below) <= value(*range.max)))
    range.max = below, range.max_exclusive = true;
  if (!range.min && !range.max) return integer ? any_integer() : any_number();
  for (const auto& bound : {range.min, range.max}) {
    const int digits = std::max(range.min ? range.min->digits : 0, range.max ? range.max->digits : 0);
    if (bound && std::abs(value(*bound)) * std::pow(10.0, digits) > 1e17)
      refuse_schema(place, "minimum and maximum of at most 17 digits together", "more digits");
  }
  return integer ? integer_between(rules_, range) : number_between(rules_, range);
}

ExprId SchemaCompiler::compile_array(const Json& schema, const std::string& place) {
  const uint32_t min = count_of(schema, "minItems", 0), max = count_of(schema, "maxItems", kUnbounded);
  if (min > max) return rules_.never();
  if (schema.contains("uniqueItems") && schema["uniqueItems"].get<bool>() && max > 1) unenforced(place, "uniqueItems");
  // In draft 7, `items` may be an array, and `additionalItems` is what `items` is in 2020-12.
  const bool old = schema.contains("items") && schema["items"].is_array();
  const char* prefix_name = old ? "items" : "prefixItems";
  const char* rest_name = old ? "additionalItems" : "items";
  std::vector<ExprId> first;
  if (schema.contains(prefix_name)) {
    for (const Json& item : schema[prefix_name]) {
      if (first.size() == max) break;
      first.push_back(value_of(item, concat(place, "/", prefix_name, "/", first.size())));
    }
  }
  const ExprId rest =
      schema.contains(rest_name) ? value_of(schema[rest_name], concat(place, "/", rest_name)) : any_value();
  const auto n = static_cast<uint32_t>(first.size());
  const auto left = [&](uint32_t count, uint32_t used) {
    return count == kUnbounded ? kUnbounded : count > used ? count - used : 0;
  };
  const ExprId next = rules_.sequence({separator(), rest});
  ExprId inside = 0;
  if (n == 0) {
    inside = rules_.nothing();
    if (max > 0) {
      inside = rules_.sequence({rest, rules_.repeat(next, left(min, 1), left(max, 1))});
      if (min == 0) inside = rules_.optional(inside);
    }
  } else {
    std::vector<ExprId> parts = {first[0]};
    for (size_t i = 1; i < first.size(); ++i) parts.push_back(rules_.sequence({separator(), first[i]}));
    parts.push_back(rules_.repeat(next, left(min, n), left(max, n)));
    inside = rules_.partial(std::move(parts), min > n ? n + 1 : min);
  }
  return bracketed("[", inside, "]");
}

void SchemaCompiler::add_members(const Json& schema, const std::string& place, std::vector<ExprId>& items,
                                 std::string& flags, std::vector<std::string>& words) {
  std::set<std::string> required, declared;
  std::vector<std::string> undeclared;
  if (schema.contains("properties")) {
    for (const auto& [key, value] : schema["properties"].items()) declared.insert(key);
  }
  if (schema.contains("required")) {
    for (const Json& name : schema["required"]) {
      const std::string& key = name.get_ref<const std::string&>();
      if (required.insert(key).second && declared.count(key) == 0) undeclared.push_back(key);
    }
  }
  const auto add = [&](const std::string& key, ExprId value, bool is_required) {
    words.push_back(spell(key));
    items.push_back(member(token(words.back()), value));
    flags += is_required ? kRequired : kOptional;
  };
  if (schema.contains("properties")) {
    for (const auto& [key, value] : schema["properties"].items())
      add(key, value_of(value, concat(place, "/properties", pointer_step(key))), required.count(key) > 0);
  }
  // Keys that are required but not declared come next, as additional ones.
  for (const std::string& key : undeclared) {
    const bool limited = schema.contains("additionalProperties");
    add(key, limited ? value_of(schema["additionalProperties"], place + "/additionalProperties") : any_value(), true);
  }
}

ExprId SchemaCompiler::compile_object(const Json& schema, const std::string& place) {
  const uint32_t min = count_of(schema, "minProperties", 0), max = count_of(schema, "maxProperties", kUnbounded);
  if (min > max) return rules_.never();
  const bool declares = has_any(schema, {"properties", "required"});
  if (!declares && max != kUnbounded) return compile_map(schema, place);
  std::vector<ExprId> items;
  std::string flags;
  std::vector<std::string> words;
  add_members(schema, place, items, flags, words);
  const auto n_required = static_cast<uint32_t>(std::count(flags.begin(), flags.end(), kRequired));
  const bool closed = schema.contains("additionalProperties") && schema["additionalProperties"] == false;
  if (max != kUnbounded && !(closed && flags.size() <= max)) unenforced(place, "maxProperties");
  if (min > std::max(1u, n_required)) unenforced(place, "minProperties");
  if (!closed) {
    const ExprId key = words.empty() ? rules_.repeat(character_, 0, kUnbounded) : rules_.other_key(words);
    const ExprId value = schema.contains("additionalProperties")
                             ? value_of(schema["additionalProperties"], place + "/additionalProperties")
                             : any_value();
    items.push_back(member(key, value));
    flags += kRepeated;
  }
  return bracketed("{", rules_.listed(separator(), items, std::move(flags), std::min(min, 1u)), "}");
}

// An object with a limited number of keys, none of them declared. Equal keys count only once, so a minimum above 1
// cannot be enforced.
ExprId SchemaCompiler::compile_map(const Json& schema, const std::string& place) {
  const uint32_t min = count_of(schema, "minProperties", 0), max = count_of(schema, "maxProperties", kUnbounded);
  if (min > 1) unenforced(place, "minProperties");
  if (max == 0) return bracketed("{", rules_.nothing(), "}");
  const ExprId value = schema.contains("additionalProperties")
                           ? value_of(schema["additionalProperties"], place + "/additionalProperties")
                           : any_value();
  const ExprId one = member(rules_.repeat(character_, 0, kUnbounded), value);
  const ExprId more = rules_.repeat(rules_.sequence({separator(), one}), 0, max - 1);
  const ExprId some = rules_.sequence({one, more});
  return bracketed("{", min > 0 ? some : rules_.optional(some), "}");
}

}  // namespace infer::grammar
