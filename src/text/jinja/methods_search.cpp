// Methods of str for searching and splitting.
#include <algorithm>

#include "src/text/jinja/builtins.h"
#include "src/text/jinja/operators.h"
#include "src/text/jinja/runtime.h"
#include "src/text/jinja/search.h"
#include "src/text/jinja/slice.h"
#include "src/text/jinja/unicode.h"

namespace infer::jinja {
namespace {

// The range of code points that find() and similar methods search. Absent if the start is after the end.
struct Window {
  std::string_view text;
  size_t offset;  // of its first byte
};

std::optional<Window> window(const Value& self, const Value& start, const Value& stop) {
  const StringObject& string = self.string();
  if (start.is_missing() && stop.is_missing()) return Window{string.text(), 0};
  const SliceBounds b = slice_bounds(string.length(), start, stop, {});
  // A start beyond the end finds nothing, not even the empty string.
  const bool beyond = start.is_integer() && start.as_int() > string.length();
  if (b.start > b.stop || beyond) return std::nullopt;
  const size_t begin = byte_offset(string, b.start), end = byte_offset(string, b.stop);
  return Window{string.text().substr(begin, end - begin), begin};
}

template <bool Last>
int64_t find_index(const Value& self, Arguments& arguments) {
  const Values& a = arguments.positional;
  const std::string_view part = text_argument(a[0], "must be str");
  const auto where = window(self, a[1], a[2]);
  if (!where) return -1;
  Heap& heap = self.object()->heap();
  const size_t at = Last ? find_last(heap, where->text, part) : find_first(heap, where->text, part);
  return at == kNotFound ? -1 : code_points_before(self.string(), where->offset + at);
}

template <bool Last>
Value find_part(Runtime&, const Value& self, Arguments& arguments) {
  return Value::of(find_index<Last>(self, arguments));
}

template <bool Last>
Value index_of_part(Runtime&, const Value& self, Arguments& arguments) {
  const int64_t at = find_index<Last>(self, arguments);
  if (at < 0) fail("substring not found");
  return Value::of(at);
}

Value count_part(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Values& a = arguments.positional;
  const std::string_view part = text_argument(a[0], "must be str");
  const auto where = window(self, a[1], a[2]);
  if (!where) return Value::of(int64_t{0});
  if (part.empty()) return Value::of(code_points(where->text) + 1);
  int64_t n = 0;
  for (size_t at = 0; (at = find_first(runtime.heap(), where->text, part, at)) != kNotFound; at += part.size()) ++n;
  runtime.heap().step(static_cast<uint64_t>(n) / 4);
  return Value::of(n);
}

template <bool End>
Value has_end(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Values& a = arguments.positional;
  const auto where = window(self, a[1], a[2]);
  const auto matches = [&](const Value& part) {
    if (!part.is_string()) {
      fail(concat(End ? "endswith" : "startswith", " first arg must be str or a tuple of str, not ", type_name(part)));
    }
    runtime.heap().work(part.text().size());
    return where && (End ? where->text.ends_with(part.text()) : where->text.starts_with(part.text()));
  };
  require_defined(a[0]);
  if (!a[0].is(Kind::kTuple)) return Value::of(matches(a[0]));
  for (const Value& part : a[0].items()) {
    runtime.heap().step();
    if (matches(part)) return Value::of(true);
  }
  return Value::of(false);
}

// Splits at white space. After `most` splits, the last piece (when splitting from the end, the first) is the rest.
template <bool FromEnd>
Values split_at_space(Heap& heap, const Value& self, int64_t most) {
  Values parts(heap);
  heap.scan(self.text().size());
  std::string_view rest = strip(self.text(), FromEnd ? Side::kRight : Side::kLeft);
  while (!rest.empty()) {
    heap.step();
    if (most >= 0 && static_cast<int64_t>(parts.size()) == most) {
      parts.push_back(make_piece(self, rest));
      break;
    }
    size_t cut = FromEnd ? rest.size() : 0;
    if (FromEnd) {
      while (cut > 0) {
        size_t at = cut - 1, length = 0;
        while (at > 0 && cut - at < 4 && (static_cast<uint8_t>(rest[at]) & 0xC0) == 0x80) --at;
        if (is_space(code_at(rest, at, length))) break;
        cut = at;
      }
      parts.push_back(make_piece(self, rest.substr(cut)));
      rest = strip(rest.substr(0, cut), Side::kRight);
    } else {
      for (size_t length = 0; cut < rest.size(); cut += length) {
        if (is_space(code_at(rest, cut, length))) break;
      }
      parts.push_back(make_piece(self, rest.substr(0, cut)));
      rest = strip(rest.substr(cut), Side::kLeft);
    }
  }
  if (FromEnd) std::reverse(parts.begin(), parts.end());
  return parts;
}

// Byte offsets of non-overlapping occurrences of `separator` in `text`, from the left.
Vector<size_t> cuts_of(Heap& heap, std::string_view text, std::string_view separator, int64_t most) {
  Vector<size_t> cuts(heap);
  for (size_t at = 0; most < 0 || static_cast<int64_t>(cuts.size()) < most; at += separator.size()) {
    at = find_first(heap, text, separator, at);
    if (at == kNotFound) break;
    heap.step();
    cuts.push_back(at);
  }
  return cuts;
}

// The same from the right; with overlapping occurrences the offsets differ from those found from the left.
Vector<size_t> cuts_from_end(Heap& heap, std::string_view text, std::string_view separator, int64_t most) {
  Vector<size_t> all(heap), cuts(heap);
  if (separator.size() == 1) {
    all = cuts_of(heap, text, separator, -1);
  } else {
    heap.work(text.size() * 2);
    for (size_t at = 0; (at = find_first(heap, text, separator, at)) != kNotFound; ++at) {
      // With overlapping occurrences, each search takes time proportional to the separator's length.
      heap.step(1 + separator.size() / 16);
      all.push_back(at);
    }
  }
  size_t limit = text.size();
  for (size_t i = all.size(); i > 0 && (most < 0 || static_cast<int64_t>(cuts.size()) < most); --i) {
    if (all[i - 1] + separator.size() > limit) continue;
    cuts.push_back(all[i - 1]);
    limit = all[i - 1];
  }
  std::reverse(cuts.begin(), cuts.end());
  return cuts;
}

template <bool FromEnd>
Value split(Runtime& runtime, const Value& self, Arguments& arguments) {
  Heap& heap = runtime.heap();
  const Value& separator = arguments.positional[0];
  const int64_t most = int_or(arguments.positional[1], -1, "maxsplit");
  if (separator.is_missing() || separator.is_none()) return make_list(split_at_space<FromEnd>(heap, self, most));
  const std::string_view cut = text_argument(separator, "must be str or None");
  if (cut.empty()) fail("empty separator");
  const Vector<size_t> cuts =
      FromEnd ? cuts_from_end(heap, self.text(), cut, most) : cuts_of(heap, self.text(), cut, most);
  Values parts(heap);
  parts.reserve(cuts.size() + 1);
  size_t begin = 0;
  for (const size_t at : cuts) {
    parts.push_back(make_piece(self, self.text().substr(begin, at - begin)));
    begin = at + cut.size();
  }
  parts.push_back(make_piece(self, self.text().substr(begin)));
  return make_list(std::move(parts));
}

template <bool Last>
Value partition(Runtime& runtime, const Value& self, Arguments& arguments) {
  Heap& heap = runtime.heap();
  const std::string_view cut = text_argument(arguments.positional[0], "must be str"), text = self.text();
  if (cut.empty()) fail("empty separator");
  const size_t at = Last ? find_last(heap, text, cut) : find_first(heap, text, cut);
  Values parts(heap);
  if (at == kNotFound) {
    if (Last) parts.push_back(make_piece(self, "")), parts.push_back(make_piece(self, ""));
    parts.push_back(self);
    if (!Last) parts.push_back(make_piece(self, "")), parts.push_back(make_piece(self, ""));
  } else {
    parts.push_back(make_piece(self, text.substr(0, at)));
    parts.push_back(make_piece(self, text.substr(at, cut.size())));
    parts.push_back(make_piece(self, text.substr(at + cut.size())));
  }
  return make_tuple(std::move(parts));
}

Value split_lines(Runtime& runtime, const Value& self, Arguments& arguments) {
  const bool keep = !arguments.positional[0].is_missing() && truth(arguments.positional[0]);
  Values lines(runtime.heap());
  runtime.heap().scan(self.text().size());
  each_line(self.text(), [&](std::string_view line, std::string_view with_end) {
    lines.push_back(make_piece(self, keep ? with_end : line));
  });
  return make_list(std::move(lines));
}

constexpr Builtin kSearchMethods[] = {
    {"find", ". [.] [.]", find_part<false>},      {"rfind", ". [.] [.]", find_part<true>},
    {"index", ". [.] [.]", index_of_part<false>}, {"rindex", ". [.] [.]", index_of_part<true>},
    {"count", ". [.] [.]", count_part},           {"startswith", ". [.] [.]", has_end<false>},
    {"endswith", ". [.] [.]", has_end<true>},     {"split", "[sep] [maxsplit]", split<false>},
    {"rsplit", "[sep] [maxsplit]", split<true>},  {"partition", ".", partition<false>},
    {"rpartition", ".", partition<true>},         {"splitlines", "[keepends]", split_lines},
};

}  // namespace

std::span<const Builtin> string_search_methods() { return kSearchMethods; }

}  // namespace infer::jinja
