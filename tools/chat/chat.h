// The terminal chat: one answer to a prompt, or a conversation with line editing and slash commands.
#pragma once

#include <string>

#include "src/engine/engine.h"
#include "src/text/chat_template.h"
#include "tools/chat/chat_session.h"

namespace infer {

struct ChatOptions {
  ChatSettings settings;
  std::string chat_template;  // where the template is from: a name or a file; "": the model
  std::string system;         // "": none
  std::string prompt;         // the first message; "": none
  bool interactive = false;   // keep asking for messages; REQUIRES: standard input is a terminal
  bool quiet = false;         // print no notes and no timings
};

// Returns the exit code: 0, or 130 if Ctrl-C ended the only answer. Throws Error; once a conversation is running, an
// error is printed and the chat continues.
int run_chat(Engine& engine, ChatTemplate chat_template, const ChatOptions& options);

}  // namespace infer
