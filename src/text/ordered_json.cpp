#include "src/text/ordered_json.h"

#include <memory>
#include <utility>

namespace infer {
namespace {

using Json = nlohmann::ordered_json;

// The last element of a container; nullptr for empty containers and other values.
Json* last_value(Json& json) {
  if (auto* array = json.get_ptr<Json::array_t*>()) return array->empty() ? nullptr : &array->back();
  if (auto* object = json.get_ptr<Json::object_t*>()) return object->empty() ? nullptr : &object->back().second;
  return nullptr;
}

void drop_last_value(Json& json) {
  if (auto* array = json.get_ptr<Json::array_t*>()) {
    array->pop_back();
  } else {
    json.get_ptr<Json::object_t*>()->pop_back();
  }
}

// Empties nested containers from the inside out, to any depth, in constant space: on the way down, the slot of the
// value being emptied stores the pointer back up.
void empty_containers(Json& json) {
  Json current = std::move(json), up;
  for (;;) {
    Json* last = last_value(current);
    if (last && !last_value(*last)) {
      drop_last_value(current);
    } else if (last) {
      Json inner = std::move(*last);
      *last = std::move(up);
      up = std::move(current);
      current = std::move(inner);
    } else if (up.is_null()) {
      return;
    } else {
      current = std::move(up);
      last = last_value(current);
      up = std::move(*last);
      drop_last_value(current);
    }
  }
}

template <typename T>
void destroy_and_free(T* value) {
  std::destroy_at(value);
  std::allocator<T>().deallocate(value, 1);
}

}  // namespace
}  // namespace infer

template <>
void nlohmann::ordered_json::json_value::destroy(value_t t) {
  if (t == value_t::array && array) {
    for (auto& value : *array) infer::empty_containers(value);
    infer::destroy_and_free(array);
  } else if (t == value_t::object && object) {
    for (auto& [name, value] : *object) infer::empty_containers(value);
    infer::destroy_and_free(object);
  } else if (t == value_t::string && string) {
    infer::destroy_and_free(string);
  } else if (t == value_t::binary && binary) {
    infer::destroy_and_free(binary);
  }
}
