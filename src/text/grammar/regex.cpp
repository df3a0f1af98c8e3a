#include "src/text/grammar/regex.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ggml-like/error.h"
#include "src/text/utf8.h"

namespace infer::grammar {
namespace {

constexpr int kMaxNesting = 100;
constexpr uint32_t kMaxRepeats = 2'000'000'000;

const CodePoints& digits() {
  static const CodePoints set = {{'0', '9'}};
  return set;
}
const CodePoints& word_characters() {
  static const CodePoints set = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  return set;
}
const CodePoints& spaces() {
  static const CodePoints set = {{9, 13},          {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680},
                                 {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                                 {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
  return set;
}
const CodePoints& line_ends() {
  static const CodePoints set = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
  return set;
}

// An expression and the number of code points it matches.
struct Piece {
  ExprId expr = 0;
  LengthRange length = {1, 1};
  std::optional<ExprId> repeated;  // set if the piece only repeats one character class
};

uint32_t plus(uint32_t a, uint32_t b) { return a >= kMaxRepeats || b >= kMaxRepeats - a ? kUnbounded : a + b; }
uint32_t times(uint32_t a, uint32_t b) {
  if (a == 0 || b == 0) return 0;
  return a >= kMaxRepeats || b > kMaxRepeats / a ? kUnbounded : a * b;
}

class RegexParser {
 public:
  // `speller`: for a pattern that may match anywhere inside a string; null: it must match the whole text.
  RegexParser(Rules& rules, std::string_view text, const LengthRange& length, const std::string& place,
              const Speller* speller)
      : rules_(rules), text_(text), length_(length), place_(place), speller_(speller) {}

  ExprId parse() {
    std::vector<ExprId> alternatives;
    do {
      alternatives.push_back(top_alternative());
    } while (take('|'));
    if (at_ < text_.size()) fail("the end of the pattern");
    return rules_.choice(std::move(alternatives));
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    const std::string found =
        at_ < text_.size() ? std::string(text_.substr(at_, decode_utf8(text_, at_).length)) : "the end";
    throw Error(ErrorCode::kInvalidArgument,
                concat(place_, ": expected ", expected, " at byte ", at_, " of the pattern, found ", found));
  }

  bool at_end() const { return at_ >= text_.size(); }
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool take(char c) {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view wanted) {
    if (text_.substr(at_, wanted.size()) != wanted) return false;
    at_ += wanted.size();
    return true;
  }

  Piece character(const CodePoints& set) {
    const ExprId expr = speller_ ? (*speller_)(set) : set.empty() ? rules_.never() : rules_.code_point(set);
    return {expr, {1, 1}, expr};
  }

  // An alternative of the whole pattern, where ^ and $ may occur. Without them, anything may come before or after.
  ExprId top_alternative() {
    const bool from_start = take('^');
    Piece piece = alternative(0);
    const bool to_end = take('$');
    if (to_end && !at_end() && peek() != '|') fail("| or the end after $");
    if (!speller_) return piece.expr;
    if (from_start && to_end) return bounded(piece);
    if (length_.min > 0 || length_.max != kUnbounded)
      fail("^ and $ around a pattern that stands beside minLength or maxLength");
    const ExprId any = rules_.repeat((*speller_)(CodePoints::all()), 0, kUnbounded);
    std::vector<ExprId> parts;
    if (!from_start) parts.push_back(any);
    parts.push_back(piece.expr);
    if (!to_end) parts.push_back(any);
    return rules_.sequence(std::move(parts));
  }

  ExprId bounded(const Piece& piece) {
    if (piece.length.min >= length_.min && piece.length.max <= length_.max) return piece.expr;
    if (!piece.repeated) fail("lengths that follow from the pattern, or a pattern that repeats one character class");
    const uint32_t min = std::max(piece.length.min, length_.min), max = std::min(piece.length.max, length_.max);
    return min > max ? rules_.never() : rules_.repeat(*piece.repeated, min, max);
  }

  Piece disjunction(int depth) {
    std::vector<ExprId> alternatives;
    LengthRange length;
    do {
      const Piece piece = alternative(depth);
      const bool first = alternatives.empty();
      length = first ? piece.length
                     : LengthRange{std::min(length.min, piece.length.min), std::max(length.max, piece.length.max)};
      alternatives.push_back(piece.expr);
    } while (take('|'));
    return {rules_.choice(std::move(alternatives)), length, {}};
  }

  Piece alternative(int depth) {
    std::vector<ExprId> parts;
    Piece only;
    LengthRange length = {0, 0};
    while (!at_end() && peek() != '|' && peek() != ')' && !(peek() == '$' && depth == 0)) {
      only = quantified(depth);
      length = {plus(length.min, only.length.min), plus(length.max, only.length.max)};
      parts.push_back(only.expr);
    }
    if (parts.size() == 1) return only;
    return {rules_.sequence(std::move(parts)), length, {}};
  }

  Piece quantified(int depth) {
    Piece piece = atom(depth);
    uint32_t min = 0, max = kUnbounded;
    if (take('*')) {
    } else if (take('+')) {
      min = 1;
    } else if (take('?')) {
      max = 1;
    } else if (take('{')) {
      min = max = count();
      if (take(',')) max = peek() == '}' ? kUnbounded : count();
      if (!take('}')) fail("}");
      if (min > max) fail("a second count that is not below the first before this");
    } else {
      return piece;
    }
    take('?');  // lazy: matches the same texts
    const bool is_class = piece.repeated && piece.length.min == 1 && piece.length.max == 1;
    Piece out = {rules_.repeat(piece.expr, min, max),
                 {times(piece.length.min, min), max == kUnbounded ? kUnbounded : times(piece.length.max, max)},
                 {}};
    if (is_class) out.repeated = piece.expr;
    return out;
  }

  uint32_t count() {
    uint64_t value = 0;
    const size_t begin = at_;
    for (; peek() >= '0' && peek() <= '9'; ++at_) {
      value = value * 10 + static_cast<uint64_t>(peek() - '0');
      if (value > kMaxRepeats) fail("a count of at most 2,000,000,000");
    }
    if (at_ == begin) fail("a count");
    return static_cast<uint32_t>(value);
  }

  Piece atom(int depth) {
    switch (peek()) {
      case '(':
        return group(depth);
      case '[':
        return character(read_class());
      case '.':
        ++at_;
        return character(line_ends().complement());
      case '\\':
        return character(escape(false));
      case '^':
      case '$':
        fail("anchors only at the beginning and the end of the pattern's alternatives");
      case '*':
      case '+':
      case '?':
      case '{':
      case '}':
      case ']':
        fail("something that can be matched");
      default:
        return character(one(read_code()));
    }
  }

  Piece group(int depth) {
    if (depth >= kMaxNesting) fail("at most 100 groups inside each other");
    ++at_;
    if (take("?")) {
      const bool named = peek() == '<' && peek(1) != '=' && peek(1) != '!';
      if (named) {
        while (!at_end() && peek() != '>') ++at_;
        if (!take('>')) fail(">");
      } else if (!take(':')) {
        fail("no lookaround or flags, which cannot be enforced,");
      }
    }
    Piece piece = disjunction(depth + 1);
    if (!take(')')) fail(")");
    return piece;
  }

  static CodePoints one(uint32_t code) { return {{code, code}}; }

  uint32_t read_code() {
    const Utf8Char c = decode_utf8(text_, at_);
    at_ += c.length;
    return c.code;
  }

  CodePoints read_class() {
    ++at_;
    const bool negated = take('^');
    CodePoints set;
    while (!take(']')) {
      if (at_end()) fail("]");
      const size_t begin = at_;
      const CodePoints first = class_atom();
      if (peek() == '-' && peek(1) != ']' && at_ + 1 < text_.size()) {
        ++at_;
        const CodePoints last = class_atom();
        const auto single = [](const CodePoints& s) {
          return s.ranges().size() == 1 && s.ranges()[0].first == s.ranges()[0].last;
        };
        if (!single(first) || !single(last) || first.ranges()[0].first > last.ranges()[0].first) {
          at_ = begin;
          fail("a range of characters in ascending order");
        }
        set.add(first.ranges()[0].first, last.ranges()[0].first);
      } else {
        set.add(first);
      }
    }
    return negated ? set.complement() : set;
  }

  CodePoints class_atom() { return peek() == '\\' ? escape(true) : one(read_code()); }

  CodePoints escape(bool in_class) {
    ++at_;
    const char c = peek();
    if (!at_end()) ++at_;
    switch (c) {
      case 'd':
        return digits();
      case 'D':
        return digits().complement();
      case 'w':
        return word_characters();
      case 'W':
        return word_characters().complement();
      case 's':
        return spaces();
      case 'S':
        return spaces().complement();
      case 't':
        return one('\t');
      case 'n':
        return one('\n');
      case 'v':
        return one('\v');
      case 'f':
        return one('\f');
      case 'r':
        return one('\r');
      case 'x':
        return one(hex(2));
      case 'u':
        return one(unicode_escape());
      case 'c':
        if ((peek() >= 'a' && peek() <= 'z') || (peek() >= 'A' && peek() <= 'Z')) return one(text_[at_++] & 31);
        break;
      case '0':
        if (peek() < '0' || peek() > '9') return one(0);
        break;
      case 'b':
        if (in_class) return one('\b');
        break;
      case '-':
        if (in_class) return one('-');
        break;
      default:
        if (c != '\0' && std::string_view("^$\\.*+?()[]{}|/").find(c) != std::string_view::npos)
          return one(static_cast<uint8_t>(c));
    }
    at_ -= at_end() && c == '\0' ? 0 : 1;
    fail("an escape that can be enforced (no \\b, \\p or back-reference)");
  }

  uint32_t hex(int n_digits) {
    uint32_t code = 0;
    for (int i = 0; i < n_digits; ++i, ++at_) code = code * 16 + hex_digit();
    return code;
  }
  uint32_t hex_digit() const {
    const char c = peek();
    if (c >= '0' && c <= '9') return static_cast<uint32_t>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<uint32_t>(c - 'a' + 10);
    if (c >= 'A' && c <= 'F') return static_cast<uint32_t>(c - 'A' + 10);
    fail("a hexadecimal digit");
  }

  uint32_t unicode_escape() {
    if (take('{')) {
      uint32_t code = 0;
      do {
        code = code * 16 + hex_digit();
        ++at_;
        if (code > kMaxCodePoint) fail("a code point of at most 10FFFF");
      } while (!take('}'));
      return code;
    }
    const uint32_t code = hex(4);
    if (code < 0xD800 || code > 0xDBFF || text_.substr(at_, 2) != "\\u") return code;
    const size_t begin = at_;
    at_ += 2;
    const uint32_t low = peek() == '{' ? 0 : hex(4);
    if (low >= 0xDC00 && low <= 0xDFFF) return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    at_ = begin;
    return code;
  }

  Rules& rules_;
  std::string_view text_;
  const LengthRange& length_;
  const std::string& place_;
  const Speller* speller_;
  size_t at_ = 0;
};

}  // namespace

ExprId parse_regex(Rules& rules, std::string_view pattern, const LengthRange& length, const std::string& place,
                   const Speller& speller) {
  return RegexParser(rules, pattern, length, place, &speller).parse();
}

ExprId parse_text_regex(Rules& rules, std::string_view pattern, const std::string& place) {
  const LengthRange any;
  return RegexParser(rules, pattern, any, place, nullptr).parse();
}

}  // namespace infer::grammar
