// Splits the text of an answer into the parts of a chat message: reasoning, content and tool calls. The text arrives in
// pieces of any size, which may end within a character or a marker: undecided text is held back, and what was handed
// out is never taken back. The same text gives the same message, however it is cut. One object per answer; one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/text/chat_template.h"
#include "src/text/reasoning.h"
#include "src/text/tool_calls/harmony_parser.h"
#include "src/text/tool_calls/message_delta.h"
#include "src/text/tool_calls/tool_call_format.h"
#include "src/text/tool_calls/tool_call_parser.h"
#include "src/text/tool_calls/tool_set.h"

namespace infer {

class MessageParser {
 public:
  // `prompt`: the rendered prompt, which may end within the reasoning or a call. `id_seed`: see make_call_id. The
  // format and the tools must outlive this.
  MessageParser(const ToolCallFormat& format, const ToolSet& tools, std::string_view prompt, std::string id_seed);

  // The parts that the next bytes of the answer complete, in order; no delta is empty.
  std::vector<MessageDelta> add(std::string_view bytes);
  // The rest. `cut_off`: the answer ended at its token limit; the beginning of a marker held back is then dropped.
  std::vector<MessageDelta> finish(bool cut_off);

 private:
  void add_text(std::string_view text, std::vector<MessageDelta>& deltas);
  void add_parts(const std::vector<ReasoningSplitter::Part>& parts, std::vector<MessageDelta>& deltas);

  const bool harmony_;
  std::string incomplete_;  // the start of a character
  ReasoningSplitter splitter_;
  ToolCallParser calls_;
  HarmonyParser messages_;  // used instead of the parsers above, if harmony_
};

// Renders the prompt for which a text is an answer. Tools are left out if the template fails to render them. Throws as
// ChatTemplate::render does.
std::string prompt_of_answer(const ChatTemplate& chat_template, Conversation conversation);

}  // namespace infer
