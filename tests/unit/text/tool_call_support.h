// What the tests of tool calls share: an answer fed in pieces, and what its deltas add up to.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/ordered_json.h"
#include "src/text/tokenizer.h"
#include "src/text/tool_calls/message_parser.h"

namespace infer::test {

struct ParsedCall {
  std::string id, name, arguments;
  bool operator==(const ParsedCall&) const = default;
};

struct ParsedMessage {
  std::string content, reasoning;
  std::vector<ParsedCall> calls;
  bool operator==(const ParsedMessage&) const = default;
};

// A template's format, the tools of a request and its prompt.
struct ParserSetup {
  ToolCallFormat format;
  ToolSet tools;
  std::string prompt;
};

// `piece`: the length of the next piece, at least 1. Checks what holds for deltas.
ParsedMessage parse(const ParserSetup& setup, std::string_view text, bool cut_off,
                    const std::function<size_t()>& piece);
ParsedMessage parse_whole(const ParserSetup& setup, std::string_view text, bool cut_off = false);
ParsedMessage parse_bytes(const ParserSetup& setup, std::string_view text, bool cut_off = false);

// Whether an answer that was cut off may give `begun`: names are complete, everything else may be a beginning.
bool is_beginning(const ParsedMessage& begun, const ParsedMessage& whole);

// A vocabulary of all bytes, with these tokens that end generation and these control tokens.
Tokenizer tokenizer_with(const std::vector<std::string>& ends, const std::vector<std::string>& controls = {});

// For messages of failed checks.
std::string printed(const ParsedMessage& message);

}  // namespace infer::test
