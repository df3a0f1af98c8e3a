#include "src/text/jinja/from_json.h"

#include <nlohmann/json.hpp>

namespace infer::jinja {

Value from_json(Heap& heap, const nlohmann::ordered_json& json, int depth) {
  using Type = nlohmann::ordered_json::value_t;
  if (depth > heap.limits().json_depth) {
    fail_budget(concat("variables nested deeper than ", heap.limits().json_depth, " levels"));
  }
  switch (json.type()) {
    case Type::boolean:
      return Value::of(json.get<bool>());
    case Type::number_integer:
      return Value::of(json.get<int64_t>());
    case Type::number_unsigned: {
      const uint64_t number = json.get<uint64_t>();
      if (number > INT64_MAX) fail(concat("a number beyond 64 bits: ", number));
      return Value::of(static_cast<int64_t>(number));
    }
    case Type::number_float:
      return Value::of(json.get<double>());
    case Type::string:
      return Value::of(heap, json.get_ref<const std::string&>());
    case Type::array: {
      Values items(heap);
      items.reserve(json.size());
      for (const auto& item : json) items.push_back(from_json(heap, item, depth + 1));
      return make_list(std::move(items));
    }
    case Type::object: {
      const Value value(Kind::kDict, heap.make<DictObject>());
      for (const auto& [name, item] : json.items()) {
        value.get<DictObject>().set(Value::of(heap, name), from_json(heap, item, depth + 1));
      }
      return value;
    }
    default:
      return Value::none();
  }
}

}  // namespace infer::jinja
