// The two ways in which Python's strings take values in: `%` and str.format().
#pragma once

#include "src/text/jinja/value.h"

namespace infer::jinja {

// text % values: a tuple has one value per conversion, a dict is for %(name)s.
Value format_percent(Runtime& runtime, const Value& text, const Value& values);

// text.format(*positional, **named); `mapping`, if given, is where names come from (format_map).
Value format_braces(Runtime& runtime, const Value& text, const Arguments& arguments, const Value* mapping = nullptr);

// One value by a format specification, as format(value, spec) does it.
void append_formatted(Heap& heap, const Value& value, std::string_view spec, Text& out);

}  // namespace infer::jinja
