// How texts are spelled inside JSON strings, as expressions of a grammar.
//
// The canonical spelling writes every character as itself, except `"`, `\` and control characters, which take the
// shortest escape, with lower-case hexadecimal digits. Where values must be compared (keys, enums, patterns), only that
// spelling is accepted, so that equal texts are equal bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/text/grammar/rules.h"

namespace infer::grammar {

// The canonical spelling, without quotes.
std::string spell(std::string_view text);
// One character of `set`, in canonical spelling.
ExprId spelled_character(Rules& rules, const CodePoints& set);
// One character in any spelling that JSON allows; \u escapes of surrogates only in pairs, which form one character.
ExprId any_character(Rules& rules);

// White space between JSON tokens, as printers write it: nothing, a space, or a line break with indentation.
ExprId json_space(Rules& rules, bool compact);

// The canonical spelling of characters as an automaton over bytes: the edges of each state, ascending by byte. State 0
// is between characters.
struct CharacterEdge {
  uint8_t first, last;
  uint32_t to;
};
const std::vector<std::vector<CharacterEdge>>& json_characters();

}  // namespace infer::grammar
