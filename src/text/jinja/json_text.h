// Writes values as JSON, formatted as Python's json.dumps does.
#pragma once

#include <string>

#include "src/text/jinja/value.h"

namespace infer::jinja {

struct JsonLayout {
  bool ensure_ascii = false;
  bool indented = false;
  std::string indent;  // one level of indentation
  std::string item_separator = ", ", key_separator = ": ";
  bool sort_keys = false;
};

// Throws Failure for values that JSON cannot represent.
void append_json(const Value& value, const JsonLayout& layout, Text& out);

}  // namespace infer::jinja
