// Renders small conversations with tool calls, using words that no template contains, and extracts what the template
// wrote for the assistant's message.
#pragma once

#include <optional>
#include <string>

#include "src/text/chat_template.h"

namespace infer {

// The probe words. The second argument is a number.
inline constexpr std::string_view kProbeNames[] = {"qxfirstq", "qxsecondq"};
inline constexpr std::string_view kProbeKeys[] = {"qxkeyq", "qxmoreq"};
inline constexpr std::string_view kProbeValues[] = {"qxvalueq", "8417"};

// How a conversation must be written for a template.
struct ProbeStyle {
  bool ids_with_names = false;  // functions.NAME:0, which Kimi's templates print instead of the name
  bool text_arguments = false;  // arguments as JSON text
  bool null_content = false;
  bool without_tools = false;  // offer no tools, for templates that fail when rendering them
};

// What a template writes for calls. Ids are replaced by kIdPlace.
struct RenderedCalls {
  std::string one, two;  // messages with one and two calls, between header and end of turn; "": rejected
  std::string before_content, after_content;  // what surrounds content in such a message
  std::string header;                         // the prompt before the message
};

// nullopt if the template rejects a message with one call, or does not show the call's name and arguments.
std::optional<RenderedCalls> render_calls(const ChatTemplate& chat_template, const ProbeStyle& style);

// What a template writes around the reasoning of a message with this header and content.
struct RenderedReasoning {
  std::string before, between;  // the text before the reasoning, and that between it and the content
};
// nullopt if it does not show the reasoning.
std::optional<RenderedReasoning> render_reasoning(const ChatTemplate& chat_template, const ProbeStyle& style,
                                                  const std::string& header);

}  // namespace infer
