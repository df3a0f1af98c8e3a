#include "src/text/jinja/slice.h"

#include <algorithm>

#include "src/text/jinja/operators.h"
#include "src/text/jinja/unicode.h"
#include "src/text/utf8.h"

namespace infer::jinja {
namespace {

std::optional<int64_t> bound(const Value& value) {
  if (value.is_missing() || value.is_none()) return std::nullopt;
  if (!value.is_integer()) fail("slice indices must be integers or None or have an __index__ method");
  return value.as_int();
}

Value slice_text(Heap& heap, const Value& value, const SliceBounds& b) {
  const StringObject& string = value.string();
  const std::string_view bytes = string.text();
  Text out(heap);
  if (b.step == 1) {
    const size_t begin = byte_offset(string, b.start), end = byte_offset(string, b.start + b.count);
    return make_piece(value, bytes.substr(begin, end - begin));
  }
  if (string.ascii()) {
    out.reserve(static_cast<size_t>(b.count));
    for (int64_t i = 0; i < b.count; ++i) out += bytes[static_cast<size_t>(b.start + i * b.step)];
  } else {
    Vector<uint32_t> starts(heap);
    heap.scan(bytes.size());
    starts.reserve(static_cast<size_t>(string.length()) + 1);
    for (size_t at = 0; at < bytes.size(); at += decode_utf8(bytes, at).length) {
      starts.push_back(static_cast<uint32_t>(at));
    }
    starts.push_back(static_cast<uint32_t>(bytes.size()));
    for (int64_t i = 0; i < b.count; ++i) {
      const auto k = static_cast<size_t>(b.start + i * b.step);
      out += bytes.substr(starts[k], starts[k + 1] - starts[k]);
    }
  }
  return make_text_like(std::move(out), value);
}

}  // namespace

SliceBounds slice_bounds(int64_t length, const Value& start, const Value& stop, const Value& step) {
  const int64_t by = bound(step).value_or(1);
  if (by == 0) fail("slice step cannot be zero");
  const bool forward = by > 0;
  const int64_t low = forward ? 0 : -1, high = forward ? length : length - 1;
  const auto resolve = [&](const Value& value, int64_t fallback) {
    std::optional<int64_t> at = bound(value);
    if (!at) return fallback;
    if (*at < 0) return std::max(*at < -length ? INT64_MIN / 2 : *at + length, low);
    return std::min(*at, high);
  };
  const int64_t from = resolve(start, forward ? low : high), to = resolve(stop, forward ? high : low);
  int64_t count = 0;
  if (forward && from < to) count = (to - from - 1) / by + 1;
  if (!forward && from > to) count = by == INT64_MIN ? 1 : (from - to - 1) / -by + 1;
  return {from, to, by, count};
}

Value element(const Value& sequence, int64_t index) {
  switch (sequence.kind()) {
    case Kind::kString: {
      const StringObject& string = sequence.string();
      const size_t at = byte_offset(string, index);
      const size_t length = decode_utf8(string.text(), at).length;
      return make_piece(sequence, string.text().substr(at, length));
    }
    case Kind::kRange: {
      const auto& range = sequence.get<RangeObject>();
      return Value::of(range.start + index * range.step);
    }
    default:
      return sequence.items()[static_cast<size_t>(index)];
  }
}

Value slice(Heap& heap, const Value& sequence, const Value& start, const Value& stop, const Value& step) {
  require_defined(sequence);
  if (!sequence.is_string() && !sequence.is_sequence() && !sequence.is(Kind::kRange)) {
    if (sequence.is(Kind::kDict)) fail("unhashable type: 'slice'");
    fail(concat("'", type_name(sequence), "' object is not subscriptable"));
  }
  const SliceBounds b = slice_bounds(length_of(sequence), start, stop, step);
  if (sequence.is_string()) return slice_text(heap, sequence, b);
  if (sequence.is(Kind::kRange)) {
    const auto& range = sequence.get<RangeObject>();
    const int64_t from = range.start + b.start * range.step, by = multiply_checked(range.step, b.step);
    const int64_t to = b.count == 0 ? from : range.start + b.stop * range.step;
    return {Kind::kRange, heap.make<RangeObject>(from, to, by, b.count)};
  }
  Values items(heap);
  items.reserve(static_cast<size_t>(b.count));
  heap.step(static_cast<uint64_t>(b.count) / 8);
  for (int64_t i = 0; i < b.count; ++i) items.push_back(sequence.items()[static_cast<size_t>(b.start + i * b.step)]);
  return sequence.is(Kind::kList) ? make_list(std::move(items)) : make_tuple(std::move(items));
}

}  // namespace infer::jinja
