// Values as JSON, as Python's json.dumps writes them.
#pragma once

#include <string>

#include "src/text/jinja/value.h"

namespace infer::jinja {

struct JsonLayout {
  bool ensure_ascii = false;
  bool indented = false;
  std::string indent;  // per level
  std::string item_separator = ", ", key_separator = ": ";
  bool sort_keys = false;
};

// Throws Failure for values that JSON does not have.
void append_json(const Value& value, const JsonLayout& layout, Text& out);

}  // namespace infer::jinja
