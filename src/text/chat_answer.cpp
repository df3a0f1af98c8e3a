#include "src/text/chat_answer.h"

#include <algorithm>
#include <vector>

#include "ggml-like/error.h"
#include "src/text/reasoning.h"
#include "src/text/tool_calls/harmony_parser.h"
#include "src/text/tool_calls/template_tokens.h"

namespace infer {
namespace {

std::string text_of(const Tokenizer& tokenizer, TokenId token) {
  return token == kNoToken ? "" : std::string(tokenizer.piece(token, true));
}

}  // namespace

std::string bos_text(const Tokenizer& tokenizer) { return text_of(tokenizer, tokenizer.vocabulary().bos); }
std::string eos_text(const Tokenizer& tokenizer) { return text_of(tokenizer, tokenizer.vocabulary().eos); }

std::string_view marked_piece(const Tokenizer& tokenizer, const ChatFormat& format, TokenId token) {
  const bool marker = std::binary_search(format.markers.begin(), format.markers.end(), token);
  return tokenizer.piece(token, marker);
}

ChatFormat find_chat_format(const ChatTemplate& chat_template, const Tokenizer& tokenizer) {
  ChatFormat format;
  format.calls = find_tool_call_format(chat_template);
  const bool harmony = format.calls.kind == ToolCallFormat::Kind::kHarmony;
  // In that format each message of an answer ends with the same token, which must not end the answer.
  if (!harmony) format.end = find_answer_end(chat_template, tokenizer);
  std::vector<std::string> texts = texts_of(format.calls);
  const std::string end = format.end.token == kNoToken ? format.end.text : text_of(tokenizer, format.end.token);
  for (const std::string& text : texts) {
    format.end_is_in_calls = format.end_is_in_calls || (!end.empty() && text.find(end) != std::string::npos);
  }
  if (harmony) texts.insert(texts.end(), harmony_markers().begin(), harmony_markers().end());
  for (const ReasoningTags& tags : reasoning_tags()) {
    texts.emplace_back(tags.open);
    texts.emplace_back(tags.close);
  }
  for (const std::string& text : texts) {
    for (const std::string_view tag : template_tokens(text)) {
      const TokenId token = tokenizer.find(tag);
      if (token != kNoToken && tokenizer.is_control(token)) format.markers.push_back(token);
    }
  }
  std::sort(format.markers.begin(), format.markers.end());
  format.markers.erase(std::unique(format.markers.begin(), format.markers.end()), format.markers.end());
  return format;
}

AnswerEnd find_answer_end(const ChatTemplate& chat_template, const Tokenizer& tokenizer) {
  constexpr std::string_view kProbe = "Zq7probe", kSpace = " \t\r\n";
  Conversation conversation;
  conversation.messages = {{{"role", "user"}, {"content", "hello"}}, {{"role", "assistant"}, {"content", kProbe}}};
  conversation.add_generation_prompt = false;
  conversation.bos_token = bos_text(tokenizer);
  conversation.eos_token = eos_text(tokenizer);
  std::string text;
  try {
    text = chat_template.render(conversation);
  } catch (const Error&) {
    return {};  // a template that rejects this conversation reports the error when it is used
  }
  const size_t at = text.rfind(kProbe);
  if (at == std::string::npos) return {};
  text.erase(0, at + kProbe.size());
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string::npos) return {};
  text = text.substr(first, text.find_last_not_of(kSpace) + 1 - first);
  const std::vector<TokenId> tokens = tokenizer.encode(text, false, true);
  const auto find = [&](bool (Tokenizer::*kind)(TokenId) const) {
    return std::find_if(tokens.begin(), tokens.end(), [&](TokenId t) { return (tokenizer.*kind)(t); });
  };
  if (find(&Tokenizer::is_eog) != tokens.end()) return {};
  const auto control = find(&Tokenizer::is_control);
  if (control != tokens.end()) return {"", *control};
  return {text, kNoToken};
}

}  // namespace infer
