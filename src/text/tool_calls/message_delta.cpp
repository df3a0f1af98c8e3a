#include "src/text/tool_calls/message_delta.h"

namespace infer {

void append_text(MessageDelta::Kind kind, std::string_view text, std::vector<MessageDelta>& deltas) {
  if (text.empty()) return;
  if (deltas.empty() || deltas.back().kind != kind) deltas.push_back({.kind = kind, .text = {}, .id = {}, .name = {}});
  deltas.back().text += text;
}

void append_arguments(size_t index, std::string_view text, std::vector<MessageDelta>& deltas) {
  constexpr auto kCall = MessageDelta::Kind::kToolCall;
  if (text.empty()) return;
  if (deltas.empty() || deltas.back().kind != kCall || deltas.back().index != index) {
    deltas.push_back({.kind = kCall, .text = {}, .index = index, .id = {}, .name = {}});
  }
  deltas.back().text += text;
}

}  // namespace infer
