#include "src/text/jinja/unicode.h"

#include <utf8proc.h>

#include <algorithm>

#include "src/text/jinja/unicode_data.h"
#include "src/text/utf8.h"

namespace infer::jinja {
namespace {

constexpr uint32_t kSigma = 0x3A3, kSmallSigma = 0x3C3, kFinalSigma = 0x3C2;

utf8proc_category_t category(uint32_t code) { return utf8proc_category(static_cast<utf8proc_int32_t>(code)); }

bool in(std::span<const CodeRange> ranges, uint32_t code) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), code,
                                      [](uint32_t c, const CodeRange& range) { return c < range.first; });
  return after != ranges.begin() && code <= std::prev(after)->last;
}

const SpecialCase* special_case(uint32_t code) {
  const auto all = special_cases();
  const auto found = std::lower_bound(all.begin(), all.end(), code,
                                      [](const SpecialCase& entry, uint32_t c) { return entry.code < c; });
  return found != all.end() && found->code == code ? &*found : nullptr;
}

bool begins_character(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) != 0x80; }

bool is_cased(uint32_t code) { return is_upper(code) || is_lower(code) || is_title(code); }

// Marks and modifiers, including apostrophes, that are skipped when looking for the end of a word.
bool is_case_ignorable(uint32_t code) {
  switch (category(code)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return code == '\'' || code == '.' || code == ':' || code == 0xB7 || code == 0x2018 || code == 0x2019 ||
             code == 0x2024 || code == 0x2027 || code == 0x55F || code == 0x5F4 || code == 0x387;
  }
}

void append_all(const uint32_t (&codes)[3], Text& out) {
  std::string bytes;
  for (const uint32_t code : codes) {
    if (code != 0) append_utf8(code, bytes);
  }
  out += std::string_view(bytes);
}

// Appends one character, decoded from `bytes`, converted to another case.
void append_case(uint32_t code, std::string_view bytes, Case how, Text& out) {
  if (bytes.size() == 1 && code < 0x80) {
    const bool upper = how == Case::kUpper || how == Case::kTitle;
    if (upper && code >= 'a' && code <= 'z') code -= 32;
    if (!upper && code >= 'A' && code <= 'Z') code += 32;
    out += static_cast<char>(code);
    return;
  }
  if (code == kReplacementCharacter) {
    out += bytes;
    return;
  }
  std::string mapped;
  if (how == Case::kUpper || how == Case::kTitle) {
    if (const SpecialCase* special = special_case(code)) {
      append_all(how == Case::kUpper ? special->upper : special->title, out);
      return;
    }
    const auto c = static_cast<utf8proc_int32_t>(code);
    append_utf8(static_cast<uint32_t>(how == Case::kUpper ? utf8proc_toupper(c) : utf8proc_totitle(c)), mapped);
  } else if (how == Case::kFold) {
    utf8proc_int32_t folded[8];
    int boundary = 0;
    const auto n =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), folded, 8, UTF8PROC_CASEFOLD, &boundary);
    for (utf8proc_ssize_t i = 0; i < n; ++i) append_utf8(static_cast<uint32_t>(folded[i]), mapped);
  } else if (code == 0x130) {  // I with a dot above
    mapped = "i\xCC\x87";
  } else {
    append_utf8(static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))), mapped);
  }
  out += std::string_view(mapped);
}

// Whether the sigma at `at` ends a word: there is a cased letter before it and none after it.
bool ends_word(std::string_view text, size_t at) {
  bool before = false;
  for (size_t i = at; i > 0;) {
    --i;
    while (i > 0 && (static_cast<uint8_t>(text[i]) & 0xC0) == 0x80) --i;
    const uint32_t code = decode_utf8(text, i).code;
    if (is_case_ignorable(code)) continue;
    before = is_cased(code);
    break;
  }
  if (!before) return false;
  for (size_t i = at + 2; i < text.size();) {
    const Utf8Char next = decode_utf8(text, i);
    if (!is_case_ignorable(next.code)) return !is_cased(next.code);
    i += next.length;
  }
  return true;
}

// Converts every character to the case given by `choose(position, code)`.
template <typename Choose>
Text map_case(Heap& heap, std::string_view text, Choose choose) {
  Text out(heap);
  out.reserve(text.size());
  heap.scan(text.size() * 4);
  size_t at = 0;
  each_character(text, [&](uint32_t code, std::string_view bytes) {
    const Case how = choose(code);
    if (code == kSigma && how == Case::kLower) {
      heap.work(text.size());
      std::string sigma;
      append_utf8(ends_word(text, at) ? kFinalSigma : kSmallSigma, sigma);
      out += std::string_view(sigma);
    } else {
      append_case(code, bytes, how, out);
    }
    at += bytes.size();
  });
  return out;
}

}  // namespace

bool is_printable(uint32_t code) {
  if (code == ' ') return true;
  switch (category(code)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    default:
      return true;
  }
}

bool is_space(uint32_t code) {
  if (code < 0x80) return (code >= 9 && code <= 13) || (code >= 0x1C && code <= 0x20);
  return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
         code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

bool is_alphabetic(uint32_t code) {
  const utf8proc_category_t c = category(code);
  return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(uint32_t code) { return category(code) == UTF8PROC_CATEGORY_ND; }
bool is_digit(uint32_t code) { return is_decimal(code) || in(other_digits(), code); }

bool is_numeric(uint32_t code) {
  const utf8proc_category_t c = category(code);
  return c == UTF8PROC_CATEGORY_ND || c == UTF8PROC_CATEGORY_NL || c == UTF8PROC_CATEGORY_NO ||
         in(numeric_letters(), code);
}

bool is_upper(uint32_t code) { return category(code) == UTF8PROC_CATEGORY_LU || in(other_uppercase(), code); }
bool is_lower(uint32_t code) { return category(code) == UTF8PROC_CATEGORY_LL || in(other_lowercase(), code); }
bool is_title(uint32_t code) { return category(code) == UTF8PROC_CATEGORY_LT; }

bool is_identifier_start(uint32_t code) {
  return code == '_' || is_alphabetic(code) || category(code) == UTF8PROC_CATEGORY_NL;
}

bool is_identifier_part(uint32_t code) {
  const utf8proc_category_t c = category(code);
  return is_identifier_start(code) || c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_MC ||
         c == UTF8PROC_CATEGORY_ND || c == UTF8PROC_CATEGORY_PC;
}

Text to_case(Heap& heap, std::string_view text, Case how) {
  return map_case(heap, text, [&](uint32_t) { return how; });
}

Text to_title(Heap& heap, std::string_view text) {
  bool in_word = false;
  return map_case(heap, text, [&](uint32_t code) {
    const bool first = !in_word;
    in_word = is_cased(code);
    return first ? Case::kTitle : Case::kLower;
  });
}

Text to_capitalized(Heap& heap, std::string_view text) {
  bool first = true;
  return map_case(heap, text, [&](uint32_t) { return std::exchange(first, false) ? Case::kTitle : Case::kLower; });
}

Text swap_case(Heap& heap, std::string_view text) {
  return map_case(heap, text, [](uint32_t code) { return is_upper(code) ? Case::kLower : Case::kUpper; });
}

namespace {

template <typename Drop>
std::string_view strip_if(std::string_view text, Side side, Drop drop) {
  if (side != Side::kRight) {
    size_t at = 0;
    for (size_t length = 0; at < text.size(); at += length) {
      const uint32_t code = code_at(text, at, length);
      if (!drop(code, text.substr(at, length))) break;
    }
    text.remove_prefix(at);
  }
  while (side != Side::kLeft && !text.empty()) {
    size_t at = text.size() - 1;
    while (at > 0 && text.size() - at < 4 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80) --at;
    size_t length = 0;
    uint32_t code = code_at(text, at, length);
    if (at + length != text.size()) at = text.size() - 1, code = code_at(text, at, length);
    if (!drop(code, text.substr(at, length))) break;
    text = text.substr(0, at);
  }
  return text;
}

}  // namespace

std::string_view strip(std::string_view text, Side side) {
  return strip_if(text, side, [](uint32_t code, std::string_view) { return is_space(code); });
}

std::string_view strip(std::string_view text, std::string_view set, Side side) {
  return strip_if(text, side, [&](uint32_t code, std::string_view bytes) {
    for (size_t at = 0, length = 0; at < set.size(); at += length) {
      const uint32_t other = code_at(set, at, length);
      if (other == code && set.substr(at, length) == bytes) return true;
    }
    return false;
  });
}

size_t byte_offset(const StringObject& text, int64_t index) {
  const std::string_view bytes = text.text();
  if (index <= 0) return 0;
  if (index >= text.length()) return bytes.size();
  if (text.ascii()) return static_cast<size_t>(index);
  // Whole blocks first: code points are counted by their first bytes.
  constexpr size_t kBlock = 64;
  size_t at = 0;
  for (; at + kBlock < bytes.size(); at += kBlock) {
    const int64_t n = code_points(bytes.substr(at, kBlock));
    if (n > index) break;
    index -= n;
  }
  text.heap().work(at);
  // A block may end in the middle of a character.
  while (at < bytes.size() && !begins_character(bytes[at])) ++at;
  for (; index > 0; --index) at += decode_utf8(bytes, at).length;
  return at;
}

int64_t code_points_before(const StringObject& text, size_t offset) {
  if (text.ascii()) return static_cast<int64_t>(offset);
  text.heap().work(offset);
  return code_points(text.text().substr(0, offset));
}

int64_t code_points(std::string_view text) {
  int64_t n = 0;
  for (const char c : text) n += begins_character(c);
  return n;
}

std::string valid_text(std::string_view text) {
  if (is_valid_utf8(text)) return std::string(text);
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char next = decode_utf8(text, at);
    append_utf8(next.code, out);
    at += next.length;
  }
  return out;
}

std::optional<Line> next_line(std::string_view text, size_t& at) {
  if (at >= text.size()) return std::nullopt;
  const size_t begin = at;
  for (size_t length = 0; at < text.size(); at += length) {
    const uint32_t code = code_at(text, at, length);
    const bool ends = (code >= 10 && code <= 13) || (code >= 0x1C && code <= 0x1E) || code == 0x85 || code == 0x2028 ||
                      code == 0x2029;
    if (!ends) continue;
    const size_t end = at;
    at += length;
    if (code == '\r' && at < text.size() && text[at] == '\n') ++at;
    return Line{text.substr(begin, end - begin), text.substr(begin, at - begin)};
  }
  return Line{text.substr(begin), text.substr(begin)};
}

uint32_t code_at(std::string_view text, size_t at, size_t& length) {
  const Utf8Char next = decode_utf8(text, at);
  length = next.length;
  return next.code;
}

}  // namespace infer::jinja
