// Prints values as Python does.
#pragma once

#include "src/text/jinja/value.h"

namespace infer::jinja {

void append_str(const Value& value, Text& out);   // str(value)
void append_repr(const Value& value, Text& out);  // repr(value)
void append_repr(std::string_view text, Text& out);

// Writes characters outside ASCII as \xNN, \uNNNN and \UNNNNNNNN.
void append_ascii(std::string_view text, Text& out);

// str(value) as a value; strings are returned unchanged.
Value to_text(Heap& heap, const Value& value);
// The text of a string, or str(value) held in `holder`.
std::string_view text_of(Heap& heap, const Value& value, Value& holder);

std::string float_repr(double number);

}  // namespace infer::jinja
