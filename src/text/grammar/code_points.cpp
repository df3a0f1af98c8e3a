#include "src/text/grammar/code_points.h"

#include <algorithm>

#include "src/text/utf8.h"

namespace infer::grammar {
namespace {

constexpr uint32_t kFirstSurrogate = 0xD800, kLastSurrogate = 0xDFFF;
constexpr uint32_t kLastOfLength[] = {0x7F, 0x7FF, 0xFFFF, kMaxCodePoint};

int encode(uint32_t code, uint8_t (&out)[4]) {
  if (code < 0x80) return out[0] = static_cast<uint8_t>(code), 1;
  const int length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (int i = length - 1; i > 0; --i, code >>= 6) out[i] = static_cast<uint8_t>(0x80 | (code & 0x3F));
  out[0] = static_cast<uint8_t>((0xF00 >> length) | code);
  return length;
}

// REQUIRES: both ends have UTF-8 encodings of the same length, and there is no surrogate between them.
void split_range(uint32_t first, uint32_t last, const std::function<void(const ByteSequence&)>& each) {
  for (uint32_t low_bits = 6; low_bits <= 18; low_bits += 6) {
    const uint32_t low = (1u << low_bits) - 1;
    if ((first & ~low) == (last & ~low)) break;
    if (first & low) {
      split_range(first, first | low, each);
      return split_range((first | low) + 1, last, each);
    }
    if ((last & low) != low) {
      split_range(first, (last & ~low) - 1, each);
      return split_range(last & ~low, last, each);
    }
  }
  uint8_t a[4], b[4];
  ByteSequence sequence;
  sequence.length = encode(first, a);
  encode(last, b);
  for (int i = 0; i < sequence.length; ++i) sequence.bytes[static_cast<size_t>(i)] = {a[i], b[i]};
  each(sequence);
}

}  // namespace

CodePoints::CodePoints(std::initializer_list<CodeRange> ranges) {
  for (const CodeRange& range : ranges) add(range.first, range.last);
}

void CodePoints::add(uint32_t first, uint32_t last) {
  // Ranges that overlap or touch [first, last] are merged into it.
  auto begin = std::lower_bound(ranges_.begin(), ranges_.end(), first,
                                [](const CodeRange& range, uint32_t code) { return range.last + 1 < code; });
  auto end = begin;
  for (; end != ranges_.end() && end->first <= last + 1; ++end) {
    first = std::min(first, end->first);
    last = std::max(last, end->last);
  }
  ranges_.insert(ranges_.erase(begin, end), {first, last});
}

void CodePoints::add(const CodePoints& other) {
  for (const CodeRange& range : other.ranges_) add(range.first, range.last);
}

bool CodePoints::contains(uint32_t code) const {
  const auto at = std::lower_bound(ranges_.begin(), ranges_.end(), code,
                                   [](const CodeRange& range, uint32_t c) { return range.last < c; });
  return at != ranges_.end() && at->first <= code;
}

CodePoints CodePoints::complement() const {
  CodePoints out;
  uint32_t next = 0;
  for (const CodeRange& range : ranges_) {
    if (next < range.first) out.ranges_.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kMaxCodePoint) out.ranges_.push_back({next, kMaxCodePoint});
  return out;
}

CodePoints CodePoints::without(const CodePoints& other) const {
  CodePoints removed = complement();
  removed.add(other);
  return removed.complement();
}

void for_each_utf8_sequence(const CodePoints& set, const std::function<void(const ByteSequence&)>& each) {
  const CodePoints spelled = set.without({{kFirstSurrogate, kLastSurrogate}});
  for (const CodeRange& range : spelled.ranges()) {
    uint32_t first = range.first;
    for (const uint32_t last_of_length : kLastOfLength) {
      if (first > range.last) break;
      if (first > last_of_length) continue;
      split_range(first, std::min(range.last, last_of_length), each);
      first = last_of_length + 1;
    }
  }
}

std::vector<uint32_t> decode_all(std::string_view text) {
  std::vector<uint32_t> codes;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text, at);
    codes.push_back(c.code);
    at += c.length;
  }
  return codes;
}

}  // namespace infer::grammar
