// Escaping for HTML and URLs.
#pragma once

#include "src/text/jinja/value.h"

namespace infer::jinja {

// Writes & < > ' " as entities.
void append_escaped(std::string_view text, Text& out);
// The same for a string value; keeps its marks.
void append_escaped(const Value& string, Text& out);

// Removes comments and tags, collapses white space to single blanks, then decodes the common entities.
void append_without_tags(std::string_view text, Text& out);

}  // namespace infer::jinja
