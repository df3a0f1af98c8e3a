#include "src/text/chat_answer.h"

#include <algorithm>
#include <vector>

#include "ggml-like/error.h"
#include "src/text/reasoning.h"

namespace infer {
namespace {

std::string text_of(const Tokenizer& tokenizer, TokenId token) {
  return token == kNoToken ? "" : std::string(tokenizer.piece(token, true));
}

}  // namespace

std::string bos_text(const Tokenizer& tokenizer) { return text_of(tokenizer, tokenizer.vocabulary().bos); }
std::string eos_text(const Tokenizer& tokenizer) { return text_of(tokenizer, tokenizer.vocabulary().eos); }

std::string_view shown_piece(const Tokenizer& tokenizer, TokenId token) {
  const std::string_view full = tokenizer.piece(token, true);
  const bool tag = std::any_of(reasoning_tags().begin(), reasoning_tags().end(),
                               [&](const ReasoningTags& tags) { return full == tags.open || full == tags.close; });
  return tag ? full : tokenizer.piece(token, false);
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
    return {};  // a template that rejects this conversation reports it when it is used
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
