// The text of one answer while it is generated: tokens become text, text is held back where a stop string may begin,
// and reasoning is told from the answer proper. One object per choice; one thread.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "src/text/detokenizer.h"
#include "src/text/logprobs.h"
#include "src/text/reasoning.h"
#include "src/text/stop_strings.h"
#include "src/text/tokenizer.h"

namespace infer {

// A token of an answer or of an echoed prompt, with the log-probabilities that were asked for.
struct TokenScore {
  TokenId token = kNoToken;
  std::optional<double> logprob;  // absent for the first token of a prompt
  std::vector<TokenLogprob> top;  // best first
};

// What a step added to an answer.
struct AnswerDelta {
  std::string content, reasoning;
  std::vector<TokenScore> scores;  // of the tokens whose text shows by now
  bool empty() const { return content.empty() && reasoning.empty() && scores.empty(); }
};

class AnswerText {
 public:
  // `chat_prompt`: of a chat, the prompt that the answer follows, which may begin with reasoning. The tokenizer must
  // outlive this.
  AnswerText(const Tokenizer& tokenizer, const std::vector<std::string>& stops,
             const std::optional<std::string>& chat_prompt);

  // Adds what the next token completes to `delta`. REQUIRES !stopped().
  void add(TokenId token, std::optional<TokenScore> score, AnswerDelta& delta);
  // Adds what was held back: there are no more tokens.
  void finish(AnswerDelta& delta);
  // A stop string is complete; it and what follows belong to no delta.
  bool stopped() const { return stops_.stopped(); }

 private:
  struct Held {
    size_t begin;  // bytes of text before the token's
    TokenScore score;
  };
  void show(const std::string& text, AnswerDelta& delta);

  const Tokenizer& tokenizer_;
  Detokenizer detokenizer_;
  StopStrings stops_;
  std::optional<ReasoningSplitter> splitter_;
  size_t decoded_ = 0, shown_ = 0;  // bytes of text from the detokenizer, and past the stop strings
  std::deque<Held> held_;
};

}  // namespace infer
