#include "src/text/jinja/from_json.h"

#include "src/text/jinja/unicode.h"
#include "src/text/ordered_json.h"
#include "src/text/utf8.h"

namespace infer::jinja {
namespace {

Value text_value(Heap& heap, const std::string& text, bool from_caller) {
  heap.work(text.size());
  Text copy(heap);
  if (is_valid_utf8(text)) copy += std::string_view(text);
  else copy += std::string_view(valid_text(text));
  if (from_caller) copy.mark_from(0);
  return Value::of(std::move(copy));
}

}  // namespace

Value from_json(Heap& heap, const nlohmann::ordered_json& json, bool from_caller, int depth) {
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
      if (number > INT64_MAX) fail(concat("the number ", number, " does not fit in 64 bits"));
      return Value::of(static_cast<int64_t>(number));
    }
    case Type::number_float:
      return Value::of(json.get<double>());
    case Type::string:
      return text_value(heap, json.get_ref<const std::string&>(), from_caller);
    case Type::array: {
      Values items(heap);
      items.reserve(json.size());
      for (const auto& item : json) items.push_back(from_json(heap, item, from_caller, depth + 1));
      const Value list = make_list(std::move(items));
      list.get<ListObject>().from_caller = from_caller;
      return list;
    }
    case Type::object: {
      const Value value(Kind::kDict, heap.make<DictObject>());
      value.get<DictObject>().from_caller = from_caller;
      for (const auto& [name, item] : json.items()) {
        value.get<DictObject>().set(text_value(heap, name, from_caller), from_json(heap, item, from_caller, depth + 1));
      }
      return value;
    }
    default:
      return Value::none();
  }
}

}  // namespace infer::jinja
