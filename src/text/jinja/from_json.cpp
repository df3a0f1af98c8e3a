#include "src/text/jinja/from_json.h"

#include <nlohmann/json.hpp>

#include "src/text/jinja/unicode.h"
#include "src/text/utf8.h"

namespace infer::jinja {
namespace {

Value text_value(Heap& heap, const std::string& text) {
  heap.work(text.size());
  return is_valid_utf8(text) ? Value::of(heap, text) : Value::of(heap, valid_text(text));
}

}  // namespace

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
      return text_value(heap, json.get_ref<const std::string&>());
    case Type::array: {
      Values items(heap);
      items.reserve(json.size());
      for (const auto& item : json) items.push_back(from_json(heap, item, depth + 1));
      return make_list(std::move(items));
    }
    case Type::object: {
      const Value value(Kind::kDict, heap.make<DictObject>());
      for (const auto& [name, item] : json.items()) {
        value.get<DictObject>().set(text_value(heap, name), from_json(heap, item, depth + 1));
      }
      return value;
    }
    default:
      return Value::none();
  }
}

}  // namespace infer::jinja
