// What a piece of a model's answer adds to the message: content, reasoning, or a part of a tool call. Plain data.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace infer {

struct MessageDelta {
  enum class Kind { kContent, kReasoning, kToolCall };
  Kind kind;
  std::string text;  // of a tool call: JSON text that continues its arguments
  // For tool calls. The first delta of a call has its id and its whole name; later ones have neither.
  size_t index = 0;
  std::string id, name;

  bool operator==(const MessageDelta&) const = default;
};

// Appends to the deltas, extending the last one if it is of the same kind. Empty text adds nothing.
void append_text(MessageDelta::Kind kind, std::string_view text, std::vector<MessageDelta>& deltas);
void append_arguments(size_t index, std::string_view text, std::vector<MessageDelta>& deltas);

}  // namespace infer
