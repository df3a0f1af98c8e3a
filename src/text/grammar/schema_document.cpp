#include "src/text/grammar/schema_document.h"

#include <algorithm>
#include <cmath>

#include "ggml-like/error.h"

namespace infer::grammar {
namespace {

enum class Value {
  kAny,
  kSchema,
  kSchemaOrArray,
  kSchemas,
  kSchemaMap,
  kCount,
  kNumber,
  kText,
  kTexts,
  kBool,
  kValues,
  kObject,
  kTypes,
  kDependencies
};

struct Keyword {
  std::string_view name;
  Value value;
  bool enforced;  // if false, refused unless it has no effect
};

// All keywords except annotations.
constexpr Keyword kKeywords[] = {
    {"type", Value::kTypes, true},
    {"enum", Value::kValues, true},
    {"const", Value::kAny, true},
    {"properties", Value::kSchemaMap, true},
    {"required", Value::kTexts, true},
    {"additionalProperties", Value::kSchema, true},
    {"minProperties", Value::kCount, true},
    {"maxProperties", Value::kCount, true},
    {"items", Value::kSchemaOrArray, true},
    {"prefixItems", Value::kSchemas, true},
    {"additionalItems", Value::kSchema, true},
    {"minItems", Value::kCount, true},
    {"maxItems", Value::kCount, true},
    {"uniqueItems", Value::kBool, true},
    {"minLength", Value::kCount, true},
    {"maxLength", Value::kCount, true},
    {"pattern", Value::kText, true},
    {"format", Value::kText, true},
    {"minimum", Value::kNumber, true},
    {"maximum", Value::kNumber, true},
    {"exclusiveMinimum", Value::kNumber, true},
    {"exclusiveMaximum", Value::kNumber, true},
    {"multipleOf", Value::kNumber, true},
    {"anyOf", Value::kSchemas, true},
    {"oneOf", Value::kSchemas, true},
    {"allOf", Value::kSchemas, true},
    {"$ref", Value::kText, true},
    {"$defs", Value::kObject, true},
    {"definitions", Value::kObject, true},
    {"not", Value::kSchema, false},
    {"if", Value::kSchema, false},
    {"then", Value::kSchema, false},
    {"else", Value::kSchema, false},
    {"contains", Value::kSchema, false},
    {"minContains", Value::kCount, false},
    {"maxContains", Value::kCount, false},
    {"patternProperties", Value::kSchemaMap, false},
    {"propertyNames", Value::kSchema, false},
    {"dependentRequired", Value::kDependencies, false},
    {"dependentSchemas", Value::kSchemaMap, false},
    {"dependencies", Value::kDependencies, false},
    {"unevaluatedProperties", Value::kSchema, false},
    {"unevaluatedItems", Value::kSchema, false},
    {"$dynamicRef", Value::kText, false},
    {"$recursiveRef", Value::kText, false},
};

constexpr std::string_view kAnnotations[] = {
    "title",       "description",     "default",          "examples",      "$comment", "$id",
    "$schema",     "deprecated",      "readOnly",         "writeOnly",     "$anchor",  "$dynamicAnchor",
    "$vocabulary", "contentEncoding", "contentMediaType", "contentSchema",
};

bool is_annotation(std::string_view name) {
  return std::find(std::begin(kAnnotations), std::end(kAnnotations), name) != std::end(kAnnotations);
}

const Keyword* find_keyword(std::string_view name) {
  const auto at =
      std::find_if(std::begin(kKeywords), std::end(kKeywords), [&](const Keyword& k) { return k.name == name; });
  return at == std::end(kKeywords) ? nullptr : at;
}

bool is_schema(const Json& value) { return value.is_object() || value.is_boolean(); }

bool all_texts(const Json& value) {
  return value.is_array() && std::all_of(value.begin(), value.end(), [](const Json& v) { return v.is_string(); });
}

constexpr double kMaxCountKeyword = 2e9;

// "" if `value` is valid for the keyword; otherwise what is expected.
const char* expected_value(Value kind, const Json& value) {
  switch (kind) {
    case Value::kAny:
      return "";
    case Value::kSchema:
      return is_schema(value) ? "" : "a schema";
    case Value::kSchemaOrArray:
      return is_schema(value) || value.is_array() ? "" : "a schema";
    case Value::kSchemas:
      return value.is_array() && !value.empty() && std::all_of(value.begin(), value.end(), is_schema)
                 ? ""
                 : "an array of at least one schema";
    case Value::kSchemaMap:
    case Value::kDependencies:
    case Value::kObject:
      return value.is_object() ? "" : "an object";
    case Value::kCount:
      if (!value.is_number() || value.get<double>() < 0) return "a count";
      if (value.is_number_float() && value.get<double>() != static_cast<double>(static_cast<int64_t>(
                                                                std::min(value.get<double>(), kMaxCountKeyword))))
        return "a count of at most 2,000,000,000";
      return value.get<double>() <= kMaxCountKeyword ? "" : "a count of at most 2,000,000,000";
    case Value::kNumber:
      return value.is_number() ? "" : "a number";
    case Value::kText:
      return value.is_string() ? "" : "a string";
    case Value::kTexts:
      return all_texts(value) ? "" : "an array of strings";
    case Value::kBool:
      return value.is_boolean() ? "" : "true or false";
    case Value::kValues:
      return value.is_array() && !value.empty() ? "" : "an array of at least one value";
    case Value::kTypes:
      return value.is_string() || (all_texts(value) && !value.empty()) ? "" : "the name of a type";
  }
  return "";
}

// Whether a keyword that cannot be enforced has no effect with this value.
bool says_nothing(const Json& schema, std::string_view name, const Json& value) {
  if (name == "then" || name == "else") return !schema.contains("if");
  if (name == "if") return !schema.contains("then") && !schema.contains("else");
  if (name == "minContains" || name == "maxContains") return !schema.contains("contains");
  if (value.is_boolean()) return name == "not" ? !value.get<bool>() : name != "contains" && value.get<bool>();
  return value.is_object() && value.empty() && name != "not" && name != "contains";
}

unsigned type_named(const std::string& name) {
  if (name == "null") return kNull;
  if (name == "boolean") return kBoolean;
  if (name == "integer") return kInteger;
  if (name == "number") return kNumber;
  if (name == "string") return kString;
  if (name == "array") return kArray;
  if (name == "object") return kObject;
  return 0;
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex_value(text[i + 1]) >= 0 && hex_value(text[i + 2]) >= 0) {
      out += static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

// The child of `json` that one step of a JSON pointer selects; null if there is none.
const Json* child_of(const Json& json, const std::string& step) {
  if (json.is_object()) {
    const auto at = json.find(step);
    return at == json.end() ? nullptr : &*at;
  }
  if (!json.is_array() || step.empty() || step.size() > 9 || step.find_first_not_of("0123456789") != step.npos)
    return nullptr;
  const size_t index = std::stoul(step);
  return index < json.size() ? &json[index] : nullptr;
}

}  // namespace

void refuse_schema(const std::string& place, const std::string& expected, const std::string& found) {
  throw Error(ErrorCode::kInvalidArgument, concat("[schema] ", place, ": expected ", expected, ", found ", found));
}

std::string pointer_step(std::string_view name) {
  std::string out = "/";
  for (const char c : name) {
    if (c == '~') out += "~0";
    else if (c == '/') out += "~1";
    else out += c;
  }
  return out;
}

unsigned schema_types(const Json& schema) {
  const auto type = schema.find("type");
  if (type == schema.end()) return kAllTypes;
  if (type->is_string()) return type_named(type->get<std::string>());
  unsigned types = 0;
  for (const Json& name : *type) types |= type_named(name.get<std::string>());
  return types;
}

unsigned type_bits(const Json& value) {
  if (value.is_string()) return kString;
  if (value.is_boolean()) return kBoolean;
  if (value.is_null()) return kNull;
  if (value.is_structured()) return value.is_array() ? kArray : kObject;
  const bool whole = value.is_number_integer() || std::floor(value.get<double>()) == value.get<double>();
  return whole ? kInteger | kNumber : unsigned{kNumber};
}

void SchemaDocument::check(const Json& schema, const std::string& place) const {
  if (schema.is_boolean()) return;
  if (!schema.is_object()) refuse_schema(place, "a schema: an object, true or false", schema.type_name());
  for (const auto& [name, value] : schema.items()) {
    if (is_annotation(name)) continue;
    const Keyword* keyword = find_keyword(name);
    if (!keyword) {
      warn_(place, name);
      continue;
    }
    const std::string expected = expected_value(keyword->value, value);
    if (!expected.empty()) refuse_schema(place + pointer_step(name), expected, value.dump().substr(0, 60));
    if (!keyword->enforced && !says_nothing(schema, name, value)) warn_(place, name);
  }
  const auto type = schema.find("type");
  if (type == schema.end()) return;
  for (const Json& name : type->is_string() ? Json::array({*type}) : *type) {
    if (type_named(name.get<std::string>()) == 0)
      refuse_schema(place + "/type", "null, boolean, integer, number, string, array or object",
                    name.get<std::string>().substr(0, 60));
  }
}

bool SchemaDocument::has_only(const Json& schema, std::string_view keyword) {
  for (const auto& [name, value] : schema.items()) {
    if (name != keyword && !is_annotation(name) && name != "$defs" && name != "definitions" && find_keyword(name))
      return false;
  }
  return schema.contains(keyword);
}

const Json* SchemaDocument::target(const Json& schema, const std::string& place) const {
  const auto ref = schema.find("$ref");
  if (ref == schema.end()) return nullptr;
  const std::string& text = ref->get_ref<const std::string&>();
  std::string_view rest = text;
  if (root_.is_object() && root_.contains("$id") && root_["$id"].is_string()) {
    const std::string& id = root_["$id"].get_ref<const std::string&>();
    if (!id.empty() && rest.starts_with(id) && (rest.size() == id.size() || rest[id.size()] == '#'))
      rest.remove_prefix(id.size());
  }
  if (!rest.empty() && rest[0] != '#')
    refuse_schema(place + "/$ref", "a reference inside this document, such as #/$defs/name", text.substr(0, 100));
  const std::string pointer = percent_decoded(rest.substr(rest.empty() ? 0 : 1));
  const Json* at = &root_;
  for (size_t begin = 0; begin < pointer.size();) {
    if (pointer[begin] != '/') refuse_schema(place + "/$ref", "a JSON pointer after #", text.substr(0, 100));
    const size_t end = std::min(pointer.find('/', begin + 1), pointer.size());
    std::string step;
    for (size_t i = begin + 1; i < end; ++i) {
      const bool escaped = pointer[i] == '~' && i + 1 < end && (pointer[i + 1] == '0' || pointer[i + 1] == '1');
      step += escaped ? (pointer[++i] == '0' ? '~' : '/') : pointer[i];
    }
    at = child_of(*at, step);
    if (!at) refuse_schema(place + "/$ref", "a reference to a part of this document", text.substr(0, 100));
    begin = end;
  }
  return at;
}

}  // namespace infer::grammar
