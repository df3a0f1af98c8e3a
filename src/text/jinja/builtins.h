// The tables of names that templates can call, and how arguments are passed.
#pragma once

#include <span>

#include "src/text/jinja/value.h"

namespace infer::jinja {

// These return nullptr if there is no such name.
const Builtin* find_filter(std::string_view name);
const Builtin* find_test(std::string_view name);
const Builtin* find_global(std::string_view name);
const Builtin* find_method(Kind kind, std::string_view name);

// The parts of those tables, by the type they apply to. Parts that are searched are sorted by name.
std::span<const Builtin> value_filters();
std::span<const Builtin> sequence_filters();
std::span<const Builtin> select_filters();
std::span<const Builtin> text_filters();
std::span<const Builtin> html_filters();
std::span<const Builtin> tests();
std::span<const Builtin> globals();
std::span<const Builtin> string_methods();
std::span<const Builtin> string_search_methods();
std::span<const Builtin> collection_methods(Kind kind);
std::span<const Builtin> changing_methods(Kind kind);  // of lists and dicts; they change their object

// Puts the arguments into the order of the builtin's parameters. Throws Failure for too many, unknown or missing ones.
void bind(const Builtin& builtin, Arguments& arguments);

// Read arguments after bind(). Each throws Failure if the argument has another type.
int64_t int_argument(const Value& value, const char* what);
int64_t int_or(const Value& value, int64_t fallback, const char* what);
std::string_view text_argument(const Value& value, const char* what);

// An attribute path as filters accept it: "a.b.0", 3 or none.
class AttributePath {
 public:
  AttributePath(Heap& heap, const Value& path);
  // With a `fallback` (neither missing nor none), attributes that do not exist evaluate to it.
  Value get(Runtime& runtime, Value item, const Value& fallback = {}) const;

 private:
  Values parts_;
};

// Strings are lowercased; other values are returned unchanged.
Value ignore_case(Heap& heap, const Value& value);

}  // namespace infer::jinja
