// Renders a conversation made up to see what a template does with it.
#pragma once

#include <string>
#include <utility>

#include "ggml-like/error.h"
#include "src/text/chat_template.h"

namespace infer {

inline constexpr const char* kProbeBos = "<qxbosq>";
inline constexpr const char* kProbeEos = "<qxeosq>";

// The prompt, with these two tokens; "" if the template rejects the conversation.
inline std::string probe_prompt(const ChatTemplate& chat_template, Conversation conversation) {
  conversation.bos_token = kProbeBos;
  conversation.eos_token = kProbeEos;
  try {
    return chat_template.render(conversation);
  } catch (const Error&) {
    return "";
  }
}

}  // namespace infer
