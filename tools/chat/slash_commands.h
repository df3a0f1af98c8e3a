// The slash commands of the terminal chat, in one list that /help prints and the Tab key
// completes.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/chat/chat_session.h"

namespace infer {

// The state that commands act on, and what the chat should do next.
struct Shell {
  ChatSession& session;
  std::string chat_template;  // where it is from, as in ChatOptions; for /show
  std::string attached;       // text from /read to prepend to the next message
  std::string file;           // where the chat was last saved to or loaded from, which /save may overwrite; "": nowhere

  enum class Next { kPrompt, kAnswer, kLeave };
  Next next = Next::kPrompt;
  int attempt = 0;      // kAnswer: how many times the last message has been answered
  std::string prefill;  // kPrompt: initial text of the line
};

struct SlashCommand {
  std::string_view name;       // "/save"
  std::string_view arguments;  // "FILE"; "": none
  std::string_view summary;
  // `argument`: the text after the name, trimmed. Throws Error for wrong use.
  std::function<void(Shell& shell, const std::string& argument)> run;
};
const std::vector<SlashCommand>& slash_commands();

// Runs a line that begins with a slash. Throws Error, including for an unknown command.
void run_slash_command(Shell& shell, const std::string& line);

}  // namespace infer
