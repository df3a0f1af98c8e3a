// Reads grammars in GBNF, the notation of llama.cpp; docs/grammars.md describes it. Free function, no state.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "src/text/grammar/grammar.h"

namespace infer::grammar {

// The token with this text; kNoToken if there is none. Needed for <text>, not for <[id]>.
using FindToken = std::function<TokenId(std::string_view text)>;

// Both throw Error(kInvalidArgument) with the line, the column and what was expected.
Rules parse_gbnf_rules(std::string_view text, const FindToken& find_token = {}, const Limits& limits = {});
std::shared_ptr<const Grammar> parse_gbnf(std::string_view text, const FindToken& find_token = {},
                                          const Limits& limits = {});

}  // namespace infer::grammar
