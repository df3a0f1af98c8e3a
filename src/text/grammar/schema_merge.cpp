// Merges several schemas that must all hold into one.
#include <algorithm>
#include <set>

#include "ggml-like/error.h"
#include "src/text/grammar/schema_document.h"

namespace infer::grammar {
namespace {

constexpr int kMaxReferences = 50;
constexpr size_t kMaxAlternatives = 300;
constexpr size_t kMaxWork = 3'000'000;

bool is_applicator(std::string_view name) {
  return name == "$ref" || name == "allOf" || name == "anyOf" || name == "oneOf" || name == "$defs" ||
         name == "definitions";
}

bool is_any(const Json& schema) {
  return schema.is_boolean() ? schema.get<bool>() : schema.is_object() && schema.empty();
}

Json both(const Json& a, const Json& b) {
  if (a == b || is_any(b)) return a;
  if (is_any(a)) return b;
  return Json{{"allOf", Json::array({a, b})}};
}

Json types_of(unsigned types) {
  Json names = Json::array();
  const std::pair<unsigned, const char*> all[] = {{kNull, "null"},     {kBoolean, "boolean"}, {kInteger, "integer"},
                                                  {kNumber, "number"}, {kString, "string"},   {kArray, "array"},
                                                  {kObject, "object"}};
  for (const auto& [bit, name] : all) {
    if (types & bit) names.push_back(name);
  }
  return names;
}

// An integer is a number.
unsigned with_integers(unsigned types) { return types & kNumber ? types | kInteger : types; }

Json values_of(const Json& schema) {
  if (schema.contains("const")) return Json::array({schema["const"]});
  return schema.contains("enum") ? schema["enum"] : Json();
}

bool has_value(const Json& values, const Json& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

std::vector<const Json*> SchemaDocument::alternatives(const Json& schema, const std::string& place) {
  std::vector<const Json*> out;
  for (Json& one : flatten(schema, place, 0)) {
    merged_.push_back(std::move(one));
    out.push_back(&merged_.back());
  }
  return out;
}

void SchemaDocument::count_work(size_t steps, const std::string& place) {
  work_ += steps;
  if (work_ > kMaxWork) refuse_schema(place, "a schema whose combinations can be listed", "too many");
}

std::vector<Json> SchemaDocument::flatten(const Json& schema, const std::string& place, int depth) {
  if (depth > kMaxReferences)
    refuse_schema(place, "references that lead somewhere", "a cycle, or more than 50 in a row");
  count_work(50 + schema.size() + (schema.is_object() && schema.contains("enum") ? schema["enum"].size() : 0), place);
  check(schema, place);
  if (schema.is_boolean()) return schema.get<bool>() ? std::vector<Json>{Json::object()} : std::vector<Json>();
  Json base = Json::object();
  for (const auto& [name, value] : schema.items()) {
    if (!is_applicator(name)) base[name] = value;
  }
  std::vector<Json> out = {std::move(base)};
  if (const Json* to = target(schema, place)) {
    const std::string there = schema["$ref"].get<std::string>().substr(0, 200);
    out = combine(out, flatten(*to, there, depth + 1), place);
  }
  if (schema.contains("allOf")) {
    for (const Json& part : schema["allOf"]) out = combine(out, flatten(part, place + "/allOf", depth + 1), place);
  }
  for (const char* name : {"anyOf", "oneOf"}) {
    if (!schema.contains(name)) continue;
    if (name == std::string_view("oneOf")) require_disjoint(schema[name], place + "/oneOf");
    std::vector<Json> branches;
    for (const Json& branch : schema[name]) {
      for (Json& one : flatten(branch, place + "/" + name, depth + 1)) branches.push_back(std::move(one));
    }
    out = combine(out, branches, place);
  }
  return out;
}

std::vector<Json> SchemaDocument::combine(const std::vector<Json>& a, const std::vector<Json>& b,
                                          const std::string& place) {
  if (a.size() * b.size() > kMaxAlternatives)
    refuse_schema(place, "at most 300 combinations of anyOf, oneOf and allOf", "more");
  std::vector<Json> out;
  for (const Json& first : a) {
    for (const Json& second : b) {
      count_work(50 + values_of(first).size() * values_of(second).size(), place);
      out.push_back(merge(first, second, place));
    }
  }
  return out;
}

// REQUIRES: neither has applicators.
Json SchemaDocument::merge(const Json& a, const Json& b, const std::string& place) const {
  Json out = merge_objects(a, b);
  for (const auto& [name, value] : a.items()) {
    if (!out.contains(name) && !b.contains(name)) out[name] = value;
  }
  for (const auto& [name, value] : b.items()) {
    if (out.contains(name)) continue;
    if (!a.contains(name) || a[name] == value || name == "title" || name == "description" || name == "default" ||
        name == "examples" || name == "$comment") {
      out[name] = value;
      continue;
    }
    const Json& other = a[name];
    if (name == "type") {
      out[name] = types_of(with_integers(schema_types(a)) & with_integers(schema_types(b)));
      if (out[name].empty()) out = Json{{"enum", Json::array()}};  // no value
      if (out.contains("enum") && out["enum"].empty()) return out;
    } else if (name.starts_with("min") || name == "exclusiveMinimum") {
      out[name] = std::max(other.get<double>(), value.get<double>()) == value.get<double>() ? value : other;
    } else if (name.starts_with("max") || name == "exclusiveMaximum") {
      out[name] = std::min(other.get<double>(), value.get<double>()) == value.get<double>() ? value : other;
    } else if (name == "required") {
      out[name] = other;
      for (const Json& key : value) {
        if (!has_value(out[name], key)) out[name].push_back(key);
      }
    } else if (name == "enum") {
      out[name] = Json::array();
      for (const Json& v : value) {
        if (has_value(other, v)) out[name].push_back(v);
      }
    } else if (name == "const") {
      out[name] = value;
      out["enum"] = Json::array();  // two different constants
    } else if (name == "items" && other.is_object() && value.is_object()) {
      out[name] = both(other, value);
    } else if (name == "uniqueItems") {
      out[name] = true;
    } else {
      refuse_schema(place, concat("one ", name, " where several schemas must hold at once"), concat("two of ", name));
    }
  }
  const bool prefix =
      a.contains("prefixItems") != b.contains("prefixItems") && (a.contains("items") || b.contains("items"));
  if (prefix) refuse_schema(place, "prefixItems in each schema that must hold", "prefixItems beside items of another");
  return out;
}

// Merges `properties` and `additionalProperties`: a key declared by only one schema is additional to the other.
Json SchemaDocument::merge_objects(const Json& a, const Json& b) const {
  Json out = Json::object();
  const Json none = Json::object();
  const auto member = [&](const Json& schema, const char* name) -> const Json& {
    return schema.contains(name) ? schema[name] : none;
  };
  const Json &pa = member(a, "properties"), &pb = member(b, "properties");
  const Json &more_a = member(a, "additionalProperties"), &more_b = member(b, "additionalProperties");
  if (!pa.empty() || !pb.empty()) {
    Json all = Json::object();
    for (const auto& [name, value] : pa.items()) all[name] = both(value, pb.contains(name) ? pb[name] : more_b);
    for (const auto& [name, value] : pb.items()) {
      if (!pa.contains(name)) all[name] = both(value, more_a);
    }
    out["properties"] = std::move(all);
  }
  if (a.contains("additionalProperties") || b.contains("additionalProperties"))
    out["additionalProperties"] = both(more_a, more_b);
  return out;
}

void SchemaDocument::require_disjoint(const Json& branches, const std::string& place) {
  std::vector<std::vector<Json>> all;
  for (const Json& branch : branches) all.push_back(flatten(branch, place, 1));
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      for (const Json& a : all[i]) {
        for (const Json& b : all[j]) {
          if (!disjoint(a, b, place, 0))
            refuse_schema(place, "branches that exclude each other (by type, or by a required key's constants)",
                          concat("branches ", j, " and ", i, " that may not"));
        }
      }
    }
  }
}

bool SchemaDocument::disjoint(const Json& a, const Json& b, const std::string& place, int depth) {
  constexpr int kMaxKeyDepth = 4;
  const Json va = values_of(a), vb = values_of(b);
  count_work(1 + va.size() * vb.size(), place);
  if (va.is_array() && vb.is_array())
    return std::none_of(va.begin(), va.end(), [&](const Json& v) { return has_value(vb, v); });
  const auto types = [](const Json& schema, const Json& values) {
    unsigned found = values.is_array() ? 0 : with_integers(schema_types(schema));
    for (const Json& value : values) found |= type_bits(value);
    return found;
  };
  const unsigned common = types(a, va) & types(b, vb);
  if (common == 0) return true;
  if ((common & ~(kInteger | kNumber)) == 0) {
    const auto above = [](const Json& x, const Json& y) {
      return x.contains("minimum") && y.contains("maximum") && x["minimum"].get<double>() > y["maximum"].get<double>();
    };
    return above(a, b) || above(b, a);
  }
  if (common != kObject || depth > kMaxKeyDepth) return false;
  return disjoint_key(a, b, place, depth) || disjoint_key(b, a, place, depth);
}

// Whether some key that `a` requires has disjoint values in `b`, or is forbidden there.
bool SchemaDocument::disjoint_key(const Json& a, const Json& b, const std::string& place, int depth) {
  if (!a.contains("required")) return false;
  for (const Json& name : a["required"]) {
    const std::string& key = name.get_ref<const std::string&>();
    const bool in_b = b.contains("properties") && b["properties"].contains(key);
    if (!in_b && b.contains("additionalProperties") && b["additionalProperties"] == false) return true;
    if (!in_b || !a.contains("properties") || !a["properties"].contains(key)) continue;
    const Json &xa = a["properties"][key], &xb = b["properties"][key];
    if (has_only(xa, "const") && has_only(xb, "const")) {
      if (xa["const"] != xb["const"]) return true;
      continue;
    }
    const std::vector<Json> xs = flatten(xa, place, 1), ys = flatten(xb, place, 1);
    const bool all = std::all_of(xs.begin(), xs.end(), [&](const Json& x) {
      return std::all_of(ys.begin(), ys.end(), [&](const Json& y) { return disjoint(x, y, place, depth + 1); });
    });
    if (all) return true;
  }
  return false;
}

}  // namespace infer::grammar
