#include "src/text/grammar/json_text.h"

namespace infer::grammar {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";

// "" for characters that need no escape.
std::string escape_of(uint32_t code) {
  switch (code) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      break;
  }
  if (code >= 0x20) return "";
  return std::string("\\u00") + kHex[code >> 4] + kHex[code & 15];
}

const CodePoints& plain_characters() {
  static const CodePoints plain = {{0x20, 0x21}, {0x23, 0x5B}, {0x5D, kMaxCodePoint}};
  return plain;
}

}  // namespace

std::string spell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const std::string escape = escape_of(static_cast<uint8_t>(c));
    if (escape.empty()) out += c;
    else out += escape;
  }
  return out;
}

ExprId spelled_character(Rules& rules, const CodePoints& set) {
  std::vector<ExprId> choices;
  CodePoints plain = set.without(plain_characters().complement());
  if (!plain.empty()) choices.push_back(rules.code_point(std::move(plain)));
  for (uint32_t code = 0; code <= '\\'; ++code) {
    const std::string escape = escape_of(code);
    if (!escape.empty() && set.contains(code)) choices.push_back(rules.bytes(escape));
  }
  return rules.choice(std::move(choices));
}

ExprId any_character(Rules& rules) {
  const CodePoints hex = {{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
  const auto digit = [&] { return rules.code_point(hex); };
  const auto one_of = [&](CodePoints set) { return rules.code_point(std::move(set)); };
  const CodePoints d = {{'D', 'D'}, {'d', 'd'}};
  const ExprId high = rules.sequence({one_of(d), one_of({{'8', '9'}, {'A', 'B'}, {'a', 'b'}}), digit(), digit()});
  const ExprId low = rules.sequence({one_of(d), one_of({{'C', 'F'}, {'c', 'f'}}), digit(), digit()});
  const ExprId below_d = rules.sequence({one_of(hex.without(d)), digit(), digit(), digit()});
  const ExprId in_d = rules.sequence({one_of(d), one_of({{'0', '7'}}), digit(), digit()});
  const ExprId code = rules.choice({below_d, in_d, rules.sequence({high, rules.bytes("\\u"), low})});
  CodePoints short_escapes;
  for (const char c : std::string_view("\"\\/bfnrt"))
    short_escapes.add(static_cast<uint8_t>(c), static_cast<uint8_t>(c));
  const ExprId escape = rules.choice({one_of(short_escapes), rules.sequence({rules.bytes("u"), code})});
  return rules.choice({rules.code_point(plain_characters()), rules.sequence({rules.bytes("\\"), escape})});
}

ExprId json_space(Rules& rules, bool compact) {
  if (compact) return rules.nothing();
  const ExprId indentation = rules.repeat(rules.code_point({{'\t', '\t'}, {' ', ' '}}), 0, 400);
  return rules.sequence(
      {rules.optional(rules.bytes(" ")), rules.optional(rules.sequence({rules.bytes("\n"), indentation}))});
}

const std::vector<std::vector<CharacterEdge>>& json_characters() {
  enum State : uint32_t {
    kBetween,
    kLast1,
    kLast2,
    kLast3,
    kAfterE0,
    kAfterEd,
    kAfterF0,
    kAfterF4,
    kEscape,
    kU,
    kU0,
    kU00,
    kU000,
    kU001
  };
  // UTF-8 as in table 3-7 of the Unicode standard.
  static const std::vector<std::vector<CharacterEdge>> states = {
      {{0x20, 0x21, kBetween},
       {0x23, 0x5B, kBetween},
       {'\\', '\\', kEscape},
       {0x5D, 0x7F, kBetween},
       {0xC2, 0xDF, kLast1},
       {0xE0, 0xE0, kAfterE0},
       {0xE1, 0xEC, kLast2},
       {0xED, 0xED, kAfterEd},
       {0xEE, 0xEF, kLast2},
       {0xF0, 0xF0, kAfterF0},
       {0xF1, 0xF3, kLast3},
       {0xF4, 0xF4, kAfterF4}},
      {{0x80, 0xBF, kBetween}},
      {{0x80, 0xBF, kLast1}},
      {{0x80, 0xBF, kLast2}},
      {{0xA0, 0xBF, kLast1}},
      {{0x80, 0x9F, kLast1}},
      {{0x90, 0xBF, kLast2}},
      {{0x80, 0x8F, kLast2}},
      {{'"', '"', kBetween},
       {'\\', '\\', kBetween},
       {'b', 'b', kBetween},
       {'f', 'f', kBetween},
       {'n', 'n', kBetween},
       {'r', 'r', kBetween},
       {'t', 't', kBetween},
       {'u', 'u', kU}},
      {{'0', '0', kU0}},
      {{'0', '0', kU00}},
      {{'0', '0', kU000}, {'1', '1', kU001}},
      {{'0', '7', kBetween}, {'b', 'b', kBetween}, {'e', 'f', kBetween}},
      {{'0', '9', kBetween}, {'a', 'f', kBetween}},
  };
  return states;
}

}  // namespace infer::grammar
