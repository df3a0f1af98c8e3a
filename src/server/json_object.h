// Builds JSON objects. The library's own way, a braced list of pairs, leaks when an allocation fails within it: GCC
// does not destroy the members of nested initializer lists that were already built. Any thread.
#pragma once

#include <utility>

#include "src/server/json_parser.h"

namespace infer {

inline void add_members(Json&) {}

template <typename Value, typename... Rest>
void add_members(Json& object, const char* name, Value&& value, Rest&&... rest) {
  object[name] = Json(std::forward<Value>(value));
  add_members(object, std::forward<Rest>(rest)...);
}

// An object with the given members, in this order: json_object("object", "list", "data", data).
template <typename... Members>
Json json_object(Members&&... members) {
  static_assert(sizeof...(members) % 2 == 0, "names and values in turn");
  Json object = Json::object();
  add_members(object, std::forward<Members>(members)...);
  return object;
}

}  // namespace infer
