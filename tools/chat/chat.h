// The chat in the terminal: one answer to a prompt, or a conversation with line editing and slash commands.
#pragma once

#include <string>

#include "src/engine/engine.h"
#include "src/text/chat_template.h"
#include "src/text/sampler_params.h"
#include "tools/flags.h"

namespace infer {

struct ChatOptions {
  AnswerFlags answer;
  SamplingParams sampling;
  nlohmann::ordered_json template_variables;  // object or null
  bool special_in_content = false;            // control tokens written in messages are tokens, not text
  std::string template_name;                  // where the template comes from, for /show
  std::string system;                         // "" for none
  std::string prompt;                         // the first message, "" for none
  bool interactive = false;                   // go on asking; REQUIRES standard input to be a terminal
  bool quiet = false;                         // no notes of what is run, no line of timings
};

// Returns the exit code: 0, or 130 when Ctrl-C ended the only answer. Throws Error; once a conversation is under way,
// an error is shown and the chat goes on.
int run_chat(Engine& engine, ChatTemplate chat_template, const ChatOptions& options);

}  // namespace infer
