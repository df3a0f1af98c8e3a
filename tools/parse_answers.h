// infer template --parse: parses a model's answers according to a template's format.
#pragma once

#include <ostream>
#include <string>

#include "src/text/chat_template.h"

namespace infer {

// `lines`: one {"text", "finish", "chunk"} per line. Writes one line for each: the message, or with "chunk" its deltas.
// Throws Error(kInvalidArgument) for a malformed line, Error(kIo) if it cannot write.
void parse_answers(const ChatTemplate& chat_template, const Conversation& conversation, const std::string& lines,
                   std::ostream& out);

}  // namespace infer
