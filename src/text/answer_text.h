// The text of one answer while it is generated. `infer run`, the terminal chat and the server all read answers
// through it, so the same tokens give the same text everywhere. Bytes of incomplete characters and text that may
// begin a stop string or a marker are held back, and reasoning and tool calls are separated from the answer itself. One
// object per answer; one thread.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/text/chat_answer.h"
#include "src/text/detokenizer.h"
#include "src/text/logprobs.h"
#include "src/text/stop_strings.h"
#include "src/text/tokenizer.h"
#include "src/text/tool_calls/message_parser.h"

namespace infer {

// How the text of a chat answer is parsed.
struct ChatRules {
  std::shared_ptr<const ChatFormat> format;
  std::string prompt;   // as rendered; it may open the reasoning or a call
  ToolSet tools;        // if there are none, calls are content
  std::string id_seed;  // see make_call_id
};

// Defines where an answer ends and how its text is parsed.
struct AnswerRules {
  std::vector<std::string> stops;         // strings that end the answer; empty ones are ignored
  std::vector<TokenId> stop_tokens;       // tokens that end it, besides the model's end-of-generation tokens
  std::shared_ptr<const ChatRules> chat;  // null: no chat; the text is content
};
// The rules for a chat with these stops: the answer also ends at the chat template's own end marker, and it may begin
// with reasoning and contain calls.
AnswerRules chat_rules(std::vector<std::string> stops, std::vector<TokenId> stop_tokens, ChatRules chat);

// A token of an answer or of an echoed prompt, with the log-probabilities that were requested.
struct TokenScore {
  TokenId token = kNoToken;
  std::optional<double> logprob;  // absent for the first token of a prompt
  std::vector<TokenLogprob> top;  // best first
};

// What one step added to an answer. Reasoning comes before content, content before calls.
struct AnswerDelta {
  std::string reasoning, content;
  std::vector<MessageDelta> calls;  // parts of tool calls
  std::vector<TokenScore> scores;   // of the tokens whose text has been shown
  bool empty() const { return content.empty() && reasoning.empty() && calls.empty() && scores.empty(); }
};

class AnswerText {
 public:
  // The tokenizer must outlive this. `choice`: index among a request's answers; it makes the ids of their calls differ.
  AnswerText(const Tokenizer& tokenizer, const AnswerRules& rules, int32_t choice = 0);

  // Adds to `delta` the text that the tokens of one step complete. `last_ends`: the last token is an end-of-generation
  // or stop token, which is not part of the text. `scores` holds one entry per token, or is empty. Returns how many of
  // the tokens belong to the answer, including the one that ends it; those after a complete stop string do not.
  // REQUIRES: !stopped().
  size_t add(std::span<const TokenId> tokens, bool last_ends, AnswerDelta& delta,
             std::span<std::optional<TokenScore>> scores = {});
  // Adds the text that was held back; no more tokens follow. `cut_off`: the answer reached its token limit, so a call
  // may be incomplete.
  void finish(AnswerDelta& delta, bool cut_off = false);
  // A stop string was completed; neither it nor what follows is in any delta.
  bool stopped() const { return stops_.stopped(); }

 private:
  struct Held {
    size_t begin;  // offset of the token's text
    TokenScore score;
  };
  void show(const std::string& text, AnswerDelta& delta);
  static void take(std::vector<MessageDelta> parts, AnswerDelta& delta);

  const Tokenizer& tokenizer_;
  std::shared_ptr<const ChatRules> chat_;
  Detokenizer detokenizer_;
  StopStrings stops_;
  std::optional<MessageParser> parser_;  // for a chat
  size_t decoded_ = 0, shown_ = 0;       // bytes of text from the detokenizer, and bytes released by stops_
  std::deque<Held> held_;
};

}  // namespace infer
