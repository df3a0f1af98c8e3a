// Helpers shared by the filters and methods of strings.
#pragma once

#include "src/text/jinja/unicode.h"

namespace infer::jinja {

// str.center, ljust (which pads on the right: kRight) and rjust. `fill`: one character.
Value justify(Heap& heap, const Value& text, int64_t width, std::string_view fill, Side filled);

// str.strip, lstrip and rstrip. If `characters` is missing or none, white space is stripped.
Value strip_value(Heap& heap, const Value& text, const Value& characters, Side side);

// str.replace; with `escape`, as Jinja's filter does when autoescape is on.
Value replace_value(Heap& heap, const Value& text, const Value& old_part, const Value& new_part, int64_t count,
                    bool escape);

}  // namespace infer::jinja
