// The commands of the terminal chat: lines that begin with a slash. One list, which /help prints and the tab key
// completes.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/chat/chat_session.h"
#include "tools/flags.h"

namespace infer {

// What commands work on, and what they leave for the chat to do next.
struct Shell {
  ChatSession& session;
  AnswerFlags& flags;         // as /set changes them; the session's settings follow
  std::string template_name;  // for /show
  std::string attached;       // text that goes before the next message, from /read
  std::string file;           // where the chat was last saved to or loaded from, which /save may replace; "": nowhere

  enum class Next { kPrompt, kAnswer, kLeave };
  Next next = Next::kPrompt;
  int attempt = 0;      // kAnswer: how often the last message was answered already
  std::string prefill;  // kPrompt: what stands in the line already
};

struct SlashCommand {
  std::string_view name;       // "/save"
  std::string_view arguments;  // "FILE", "" for none
  std::string_view summary;
  // `argument`: what follows the name, without white space round it. Throws Error for wrong use.
  std::function<void(Shell& shell, const std::string& argument)> run;
};
const std::vector<SlashCommand>& slash_commands();

// Runs a line that begins with a slash. Throws Error, also for an unknown command.
void run_slash_command(Shell& shell, const std::string& line);

// The session's settings as flags and sampling say.
void apply_answer_flags(const AnswerFlags& flags, ChatSettings& settings);

// One line on what an answer cost: tokens of the prompt, how many of them from the cache, tokens and speed.
std::string turn_summary(const Turn& turn);

}  // namespace infer
