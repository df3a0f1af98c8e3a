#include "src/server/answer_text.h"

#include <utility>

#include "src/text/chat_answer.h"

namespace infer {

AnswerText::AnswerText(const Tokenizer& tokenizer, const std::vector<std::string>& stops,
                       const std::optional<std::string>& chat_prompt)
    : tokenizer_(tokenizer), stops_(stops) {
  if (chat_prompt) splitter_.emplace(*chat_prompt);
}

void AnswerText::add(TokenId token, std::optional<TokenScore> score, AnswerDelta& delta) {
  if (score) held_.push_back({decoded_, std::move(*score)});
  const std::string text =
      detokenizer_.add(splitter_ ? shown_piece(tokenizer_, token) : tokenizer_.piece(token, false));
  decoded_ += text.size();
  show(stops_.add(text), delta);
}

void AnswerText::finish(AnswerDelta& delta) {
  const std::string rest = detokenizer_.flush();
  decoded_ += rest.size();
  std::string text = stops_.add(rest);
  text += stops_.flush();
  show(text, delta);
  // Tokens without text, at the end of an answer that no stop string cut.
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
