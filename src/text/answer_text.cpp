#include "src/text/answer_text.h"

#include <utility>

namespace infer {

AnswerRules chat_rules(std::vector<std::string> stops, std::vector<TokenId> stop_tokens, const AnswerEnd& end,
                       std::string prompt) {
  AnswerRules rules{std::move(stops), std::move(stop_tokens), std::move(prompt)};
  if (!end.text.empty()) rules.stops.push_back(end.text);
  if (end.token != kNoToken) rules.stop_tokens.push_back(end.token);
  return rules;
}

AnswerText::AnswerText(const Tokenizer& tokenizer, const AnswerRules& rules)
    : tokenizer_(tokenizer), stops_(rules.stops) {
  if (rules.chat_prompt) splitter_.emplace(*rules.chat_prompt);
}

size_t AnswerText::add(std::span<const TokenId> tokens, bool last_ends, AnswerDelta& delta,
                       std::span<std::optional<TokenScore>> scores) {
  const size_t n_text = tokens.size() - (last_ends && !tokens.empty());
  for (size_t i = 0; i < n_text; ++i) {
    if (!scores.empty() && scores[i]) held_.push_back({decoded_, std::move(*scores[i])});
    const std::string text =
        detokenizer_.add(splitter_ ? shown_piece(tokenizer_, tokens[i]) : tokenizer_.piece(tokens[i], false));
    decoded_ += text.size();
    show(stops_.add(text), delta);
    if (stopped()) return i + 1;
  }
  return tokens.size();
}

void AnswerText::finish(AnswerDelta& delta) {
  const std::string rest = detokenizer_.flush();
  decoded_ += rest.size();
  std::string text = stops_.add(rest);
  text += stops_.flush();
  show(text, delta);
  // Tokens without text at the end of an answer that no stop string ended.
  for (; !stopped() && !held_.empty(); held_.pop_front()) delta.scores.push_back(std::move(held_.front().score));
  if (!splitter_) return;
  for (auto& part : splitter_->flush()) (part.reasoning ? delta.reasoning : delta.content) += part.text;
}

void AnswerText::show(const std::string& text, AnswerDelta& delta) {
  shown_ += text.size();
  for (; !held_.empty() && held_.front().begin < shown_; held_.pop_front()) {
    delta.scores.push_back(std::move(held_.front().score));
  }
  if (!splitter_) {
    delta.content += text;
    return;
  }
  for (auto& part : splitter_->add(text)) (part.reasoning ? delta.reasoning : delta.content) += part.text;
}

}  // namespace infer
