// Breaks text into lines of a given width, as Python's textwrap does.
#pragma once

#include "src/text/jinja/value.h"

namespace infer::jinja {

struct WrapOptions {
  int64_t width = 79;
  bool break_long_words = true;
  bool break_on_hyphens = true;
};

// Wraps each line of `text` separately.
Text word_wrap(Heap& heap, std::string_view text, std::string_view line_end, const WrapOptions& options);

}  // namespace infer::jinja
