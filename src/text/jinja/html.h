// Escaping for HTML and URLs.
#pragma once

#include "src/text/jinja/value.h"

namespace infer::jinja {

// & < > ' " as entities.
void append_escaped(std::string_view text, Text& out);
// Of a string, with its marks.
void append_escaped(const Value& string, Text& out);

// Without comments and tags, white space made single blanks, then common entities made characters.
void append_without_tags(std::string_view text, Text& out);

}  // namespace infer::jinja
