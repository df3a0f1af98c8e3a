// Python's two ways of formatting values into a string: `%` and str.format().
#pragma once

#include "src/text/jinja/value.h"

namespace infer::jinja {

// text % values: a tuple has one value per conversion; a dict is for %(name)s.
Value format_percent(Runtime& runtime, const Value& text, const Value& values);

// text.format(*positional, **named). If `mapping` is given, names are looked up there (format_map).
Value format_braces(Runtime& runtime, const Value& text, const Arguments& arguments, const Value* mapping = nullptr);

// Formats one value as format(value, spec) does.
void append_formatted(Heap& heap, const Value& value, std::string_view spec, Text& out);

}  // namespace infer::jinja
