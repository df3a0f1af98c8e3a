#include "src/text/jinja/string_tools.h"

#include "src/text/jinja/html.h"
#include "src/text/jinja/print.h"
#include "src/text/jinja/search.h"

namespace infer::jinja {
Value justify(Heap& heap, const Value& text, int64_t width, std::string_view fill, Side filled) {
  const int64_t length = text.string().length();
  if (width <= length) return text;
  const int64_t missing = width - length;
  if (static_cast<uint64_t>(missing) > heap.limits().memory_bytes)
    fail_budget(concat("the width ", width, " is too large"));
  // When centring leaves an odd number of fill characters, Python puts the extra one on the left if the width is odd.
  const int64_t left = filled == Side::kLeft    ? missing
                       : filled == Side::kRight ? 0
                                                : missing / 2 + (missing & width & 1);
  Text out(heap);
  out.reserve(text.text().size() + static_cast<size_t>(missing) * fill.size());
  const auto pad = [&](int64_t n) {
    if (fill.size() == 1) out.append(static_cast<size_t>(n), fill[0]);
    else
      for (heap.scan(static_cast<size_t>(n)); n > 0; --n) out += fill;
  };
  pad(left);
  append_str(text, out);
  pad(missing - left);
  return is_markup(text) ? make_markup(std::move(out)) : Value::of(std::move(out));
}

Value strip_value(Heap& heap, const Value& text, const Value& characters, Side side) {
  std::string_view kept;
  size_t each = 1;  // cost per character
  if (characters.is_missing() || characters.is_none()) {
    kept = strip(text.text(), side);
  } else {
    if (!characters.is_string()) fail(concat("strip arg must be None or str, not ", type_name(characters)));
    // Every character is compared with every character of the set.
    const std::string_view set = characters.text();
    if (set.size() > 64) heap.work(std::min(text.text().size() * set.size(), size_t{1} << 40));
    each = 1 + set.size() / 4;
    kept = strip(text.text(), set, side);
  }
  if (kept.size() == text.text().size()) return text;
  heap.scan((text.text().size() - kept.size()) * each);
  return make_piece(text, kept);
}

Value replace_value(Heap& heap, const Value& text, const Value& old_part, const Value& new_part, int64_t count,
                    bool escape) {
  const bool markup = is_markup(text) || (escape && (is_markup(old_part) || is_markup(new_part)));
  const auto escaped = [&](const Value& value) {
    Text out(heap);
    if (markup && !is_markup(value)) append_escaped(value, out);
    else append_str(value, out);
    return out;
  };
  const Text source = escaped(text), from = escaped(old_part), to = escaped(new_part);
  Text out(heap);
  size_t at = 0;
  if (from.empty()) {
    // Inserted between all characters and at both ends.
    heap.scan(source.size());
    for (size_t length = 0; count != 0; at += length, --count) {
      heap.work(to.size());
      out.append_part(to, 0, to.size());
      if (at >= source.size()) break;
      code_at(source, at, length);
      out.append_part(source, at, length);
    }
  } else {
    for (; count != 0; --count) {
      const size_t found = find_first(heap, source, from, at);
      if (found == kNotFound) break;
      heap.step();
      out.append_part(source, at, found - at);
      out.append_part(to, 0, to.size());
      at = found + from.size();
    }
  }
  if (at < source.size()) out.append_part(source, at, source.size() - at);
  return markup ? make_markup(std::move(out)) : Value::of(std::move(out));
}

}  // namespace infer::jinja
