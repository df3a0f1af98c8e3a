// How texts are spelled inside JSON strings, as expressions of a grammar.
//
// The usual spelling writes every character as itself, except `"`, `\` and control characters, which take the shortest
// escape, with lower-case hexadecimal digits. Where a value must be told from others (keys, enums, patterns), only that
// spelling is taken, so that equal texts are equal bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/text/grammar/rules.h"

namespace infer::grammar {

// The usual spelling, without quotes.
std::string spell(std::string_view text);
// One character of `set`, in the usual spelling.
ExprId spelled_character(Rules& rules, const CodePoints& set);
// One character in any spelling that JSON allows; \u escapes of surrogates only in pairs, which are one character.
ExprId any_character(Rules& rules);

// What may stand between the tokens of JSON, as printers write it: nothing, a space, or a line break and an
// indentation.
ExprId json_space(Rules& rules, bool compact);

// The usual spelling of characters as an automaton over bytes: for each state its edges, ascending by byte. State 0 is
// between characters.
struct CharacterEdge {
  uint8_t first, last;
  uint32_t to;
};
const std::vector<std::vector<CharacterEdge>>& json_characters();

}  // namespace infer::grammar
