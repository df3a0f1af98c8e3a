// Renders small conversations with tool calls, of words that no template contains, and cuts out what the template wrote
// for the assistant's message.
#pragma once

#include <optional>
#include <string>

#include "src/text/chat_template.h"

namespace infer {

// The words. The second argument is a number.
inline constexpr std::string_view kProbeNames[] = {"qxfirstq", "qxsecondq"};
inline constexpr std::string_view kProbeKeys[] = {"qxkeyq", "qxmoreq"};
inline constexpr std::string_view kProbeValues[] = {"qxvalueq", "8417"};

// How a conversation has to be written for a template.
struct ProbeStyle {
  bool ids_with_names = false;  // functions.NAME:0, which Kimi's templates print instead of the name
  bool text_arguments = false;  // arguments as JSON text
  bool null_content = false;
  bool without_tools = false;  // no tools offered, for a template that fails to show any
};

// What a template writes. Ids are replaced by kIdPlace.
struct RenderedCalls {
  std::string one,
      two;  // messages with one call and with two, between the header and the end of the turn; "": rejected
  std::string before_content, after_content;  // what stands around content, there
  std::string header;                         // the prompt up to the message
};

// nullopt: the template rejects a message with one call, or does not show the call's name and arguments.
std::optional<RenderedCalls> render_calls(const ChatTemplate& chat_template, const ProbeStyle& style);

// What a template writes around the reasoning of a message with this header and content.
struct RenderedReasoning {
  std::string before, between;  // before the reasoning, and from there to the content
};
// nullopt: it shows none.
std::optional<RenderedReasoning> render_reasoning(const ChatTemplate& chat_template, const ProbeStyle& style,
                                                  const std::string& header);

}  // namespace infer
