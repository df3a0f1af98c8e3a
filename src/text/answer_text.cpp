#include "src/text/answer_text.h"

#include <utility>

#include "ggml-like/message.h"

namespace infer {

AnswerRules chat_rules(std::vector<std::string> stops, std::vector<TokenId> stop_tokens, ChatRules chat) {
  AnswerRules rules{std::move(stops), std::move(stop_tokens), std::make_shared<const ChatRules>(std::move(chat))};
  const ChatFormat& format = *rules.chat->format;
  if (format.end_is_in_calls && !rules.chat->tools.empty()) return rules;
  if (!format.end.text.empty()) rules.stops.push_back(format.end.text);
  if (format.end.token != kNoToken) rules.stop_tokens.push_back(format.end.token);
  return rules;
}

AnswerText::AnswerText(const Tokenizer& tokenizer, const AnswerRules& rules, int32_t choice)
    : tokenizer_(tokenizer), chat_(rules.chat), stops_(rules.stops) {
  if (chat_) parser_.emplace(chat_->format->calls, chat_->tools, chat_->prompt, concat(chat_->id_seed, "/", choice));
}

size_t AnswerText::add(std::span<const TokenId> tokens, bool last_ends, AnswerDelta& delta,
                       std::span<std::optional<TokenScore>> scores) {
  const size_t n_text = tokens.size() - (last_ends && !tokens.empty());
  for (size_t i = 0; i < n_text; ++i) {
    if (!scores.empty() && scores[i]) held_.push_back({decoded_, std::move(*scores[i])});
    const std::string text = detokenizer_.add(chat_ ? marked_piece(tokenizer_, *chat_->format, tokens[i])
                                                    : tokenizer_.piece(tokens[i], false));
    decoded_ += text.size();
    show(stops_.add(text), delta);
    if (stopped()) return i + 1;
  }
  return tokens.size();
}

void AnswerText::finish(AnswerDelta& delta, bool cut_off) {
  const std::string rest = detokenizer_.flush();
  decoded_ += rest.size();
  std::string text = stops_.add(rest);
  text += stops_.flush();
  show(text, delta);
  // At the end of an answer without a stop string, tokens without text remain.
  for (; !stopped() && !held_.empty(); held_.pop_front()) delta.scores.push_back(std::move(held_.front().score));
  // If no calls are parsed, everything held back is text.
  if (parser_) take(parser_->finish(cut_off && !chat_->tools.empty()), delta);
}

void AnswerText::take(std::vector<MessageDelta> parts, AnswerDelta& delta) {
  for (MessageDelta& part : parts) {
    if (part.kind == MessageDelta::Kind::kReasoning) delta.reasoning += part.text;
    else if (part.kind == MessageDelta::Kind::kContent) delta.content += part.text;
    else delta.calls.push_back(std::move(part));
  }
}

void AnswerText::show(const std::string& text, AnswerDelta& delta) {
  shown_ += text.size();
  for (; !held_.empty() && held_.front().begin < shown_; held_.pop_front()) {
    delta.scores.push_back(std::move(held_.front().score));
  }
  if (parser_) take(parser_->add(text), delta);
  else delta.content += text;
}

}  // namespace infer
