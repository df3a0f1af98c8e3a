#include "src/text/tool_calls/message_parser.h"

#include <algorithm>
#include <utility>

#include "src/text/utf8.h"

namespace infer {
namespace {

// The number of bytes at the end that may be an incomplete character.
size_t incomplete_end(std::string_view text) {
  for (size_t n = 1; n <= std::min<size_t>(3, text.size()); ++n) {
    const auto c = static_cast<unsigned char>(text[text.size() - n]);
    if (c < 0x80) return 0;
    if (c >= 0xC0) return decode_utf8(text, text.size() - n).cut_off ? n : 0;
  }
  return 0;
}

}  // namespace

MessageParser::MessageParser(const ToolCallFormat& format, const ToolSet& tools, std::string_view prompt,
                             std::string id_seed)
    : harmony_(format.kind == ToolCallFormat::Kind::kHarmony),
      splitter_(prompt, {format.reasoning_open, format.reasoning_close}),
      calls_(format, tools, id_seed, prompt),
      messages_(tools, id_seed) {}

std::vector<MessageDelta> MessageParser::add(std::string_view bytes) {
  std::string text = std::exchange(incomplete_, "").append(bytes);
  const size_t n = incomplete_end(text);
  incomplete_ = text.substr(text.size() - n);
  text.erase(text.size() - n);
  std::vector<MessageDelta> deltas;
  add_text(text, deltas);
  return deltas;
}

std::vector<MessageDelta> MessageParser::finish(bool cut_off) {
  std::vector<MessageDelta> deltas;
  if (!cut_off) {
    if (!incomplete_.empty()) add_text(kReplacementUtf8, deltas);
    if (!harmony_) add_parts(splitter_.flush(), deltas);
  }
  if (harmony_) messages_.finish(cut_off, deltas);
  else calls_.finish(cut_off, deltas);
  return deltas;
}

void MessageParser::add_text(std::string_view text, std::vector<MessageDelta>& deltas) {
  if (harmony_) messages_.add(text, deltas);
  else add_parts(splitter_.add(text), deltas);
}

void MessageParser::add_parts(const std::vector<ReasoningSplitter::Part>& parts, std::vector<MessageDelta>& deltas) {
  for (const ReasoningSplitter::Part& part : parts) {
    if (part.reasoning) append_text(MessageDelta::Kind::kReasoning, part.text, deltas);
    else calls_.add(part.text, deltas);
  }
}

std::string prompt_of_answer(const ChatTemplate& chat_template, Conversation conversation) {
  try {
    return chat_template.render(conversation);
  } catch (const TemplateError& error) {
    if (conversation.tools.is_null() || error.kind() != TemplateError::Kind::kRuntime) throw;
    conversation.tools = nullptr;
    return chat_template.render(conversation);
  }
}

}  // namespace infer
