// The terminal chat: one answer to a prompt, or a conversation with line editing and slash commands.
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
  std::string template_name;                  // source of the template, for /show
  std::string system;                         // "": none
  std::string prompt;                         // the first message; "": none
  bool interactive = false;                   // keep asking for messages; REQUIRES: standard input is a terminal
  bool quiet = false;                         // print no notes and no timings
};

// Returns the exit code: 0, or 130 if Ctrl-C ended the only answer. Throws Error; once a conversation is running, an
// error is printed and the chat continues.
int run_chat(Engine& engine, ChatTemplate chat_template, const ChatOptions& options);

}  // namespace infer
