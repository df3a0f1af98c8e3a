// Sets of Unicode code points as sorted ranges, and the byte sequences that spell a range in UTF-8. Plain values.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace infer::grammar {

inline constexpr uint32_t kMaxCodePoint = 0x10FFFF;

struct CodeRange {
  uint32_t first, last;
  bool operator==(const CodeRange&) const = default;
};

class CodePoints {
 public:
  CodePoints() = default;
  CodePoints(std::initializer_list<CodeRange> ranges);
  static CodePoints all() { return {{0, kMaxCodePoint}}; }

  void add(uint32_t first, uint32_t last);  // REQUIRES: first <= last
  void add(const CodePoints& other);
  bool empty() const { return ranges_.empty(); }
  bool contains(uint32_t code) const;
  CodePoints complement() const;
  CodePoints without(const CodePoints& other) const;
  // Ascending, with gaps in between.
  const std::vector<CodeRange>& ranges() const { return ranges_; }

 private:
  std::vector<CodeRange> ranges_;
};

// A sequence of 1 to 4 byte ranges.
struct ByteSequence {
  struct Range {
    uint8_t first, last;
  };
  std::array<Range, 4> bytes;
  int length = 0;
};

// Calls `each` for sequences that together spell exactly the code points of the set; surrogates cannot be spelled.
void for_each_utf8_sequence(const CodePoints& set, const std::function<void(const ByteSequence&)>& each);

// The code points of valid UTF-8. REQUIRES: is_valid_utf8(text).
std::vector<uint32_t> decode_all(std::string_view text);

}  // namespace infer::grammar
