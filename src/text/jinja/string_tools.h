// What filters and methods of strings share.
#pragma once

#include "src/text/jinja/unicode.h"

namespace infer::jinja {

// str.center, ljust (the text is at the left, so kRight is filled), rjust. `fill`: one character.
Value justify(Heap& heap, const Value& text, int64_t width, std::string_view fill, Side filled);

// str.strip, lstrip and rstrip; `characters` missing or none: white space.
Value strip_value(Heap& heap, const Value& text, const Value& characters, Side side);

// str.replace; with `escape` as Jinja's filter does it when autoescape is on.
Value replace_value(Heap& heap, const Value& text, const Value& old_part, const Value& new_part, int64_t count,
                    bool escape);

}  // namespace infer::jinja
