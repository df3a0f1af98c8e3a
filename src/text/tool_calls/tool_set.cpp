#include "src/text/tool_calls/tool_set.h"

#include <utility>

namespace infer {
namespace {

using nlohmann::ordered_json;

constexpr int kMaxSchemaDepth = 16;  // of references and alternatives
constexpr size_t kMaxVisits = 1000;  // schemas visited per parameter

// The types of values that a schema allows.
struct Types {
  bool string = false, other = false;
  void add(const std::string& name) { (name == "string" ? string : other) = true; }
};

const ordered_json* member(const ordered_json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

// The schema that "#/$defs/x" refers to; nullptr if there is none.
const ordered_json* referred(const ordered_json& root, const std::string& reference) {
  if (!reference.starts_with("#")) return nullptr;
  try {
    const ordered_json::json_pointer pointer(reference.substr(1));
    return root.contains(pointer) ? &root.at(pointer) : nullptr;
  } catch (const ordered_json::exception&) {
    return nullptr;
  }
}

class TypeFinder {
 public:
  explicit TypeFinder(const ordered_json& root) : root_(root) {}

  void add(const ordered_json& schema, int depth) {
    if (depth > kMaxSchemaDepth || ++visits_ > kMaxVisits || !schema.is_object()) return;
    if (const ordered_json* type = member(schema, "type")) {
      if (type->is_string()) types_.add(*type);
      else if (type->is_array())
        for (const ordered_json& name : *type)
          if (name.is_string()) types_.add(name);
      return;
    }
    if (const ordered_json* values = member(schema, "enum"); values && values->is_array()) {
      for (const ordered_json& value : *values) types_.add(value.is_string() ? "string" : "other");
    }
    if (const ordered_json* value = member(schema, "const")) types_.add(value->is_string() ? "string" : "other");
    for (const char* name : {"anyOf", "oneOf", "allOf"}) {
      const ordered_json* schemas = member(schema, name);
      if (schemas && schemas->is_array())
        for (const ordered_json& one : *schemas) add(one, depth + 1);
    }
    if (const ordered_json* reference = member(schema, "$ref"); reference && reference->is_string()) {
      if (const ordered_json* target = referred(root_, *reference)) add(*target, depth + 1);
    }
  }

  ParameterKind kind() const {
    if (types_.string == types_.other) return ParameterKind::kMixed;
    return types_.string ? ParameterKind::kString : ParameterKind::kJson;
  }

 private:
  const ordered_json& root_;
  Types types_;
  size_t visits_ = 0;
};

}  // namespace

ToolSet::ToolSet(const ordered_json& tools) {
  if (!tools.is_array()) return;
  for (const ordered_json& tool : tools) {
    const ordered_json* function = member(tool, "function");
    if (!function) function = &tool;
    const ordered_json* name = member(*function, "name");
    if (!name || !name->is_string()) continue;
    Parameters kinds;
    const ordered_json* schema = member(*function, "parameters");
    const ordered_json* properties = schema ? member(*schema, "properties") : nullptr;
    if (properties && properties->is_object()) {
      for (const auto& [key, property] : properties->items()) {
        TypeFinder finder(*schema);
        finder.add(property, 0);
        kinds[key] = finder.kind();
      }
    }
    tools_[name->get<std::string>()] = std::move(kinds);
  }
}

ParameterKind ToolSet::parameter(std::string_view tool, std::string_view name) const {
  const auto parameters = tools_.find(tool);
  if (parameters == tools_.end()) return ParameterKind::kMixed;
  const auto kind = parameters->second.find(name);
  return kind == parameters->second.end() ? ParameterKind::kMixed : kind->second;
}

}  // namespace infer
