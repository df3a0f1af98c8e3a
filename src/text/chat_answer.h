// Connects the tokens of a chat with its text: the texts of BOS and EOS in a template, how the template writes answers,
// and which control tokens are part of them. Thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/text/chat_template.h"
#include "src/text/tokenizer.h"
#include "src/text/tool_calls/tool_call_format.h"

namespace infer {

// What ends an answer besides end-of-generation tokens. The model writes it, but it is not part of the answer.
struct AnswerEnd {
  std::string text;          // "": none
  TokenId token = kNoToken;  // a control token that ends an answer
};

// Finds them by rendering a conversation that contains an answer, and looking at what follows it. At most one is found;
// none if an end-of-generation token follows or the template rejects the conversation.
AnswerEnd find_answer_end(const ChatTemplate& chat_template, const Tokenizer& tokenizer);

// How a model writes its answers.
struct ChatFormat {
  ToolCallFormat calls;
  AnswerEnd end;
  bool end_is_in_calls = false;  // the end also occurs in calls, so it cannot end answers that may have some
  std::vector<TokenId> markers;  // control tokens that separate the parts of an answer, ascending
};
ChatFormat find_chat_format(const ChatTemplate& chat_template, const Tokenizer& tokenizer);

// The texts of the vocabulary's BOS and EOS tokens, for `bos_token` and `eos_token` of a template; "" if there is none.
std::string bos_text(const Tokenizer& tokenizer);
std::string eos_text(const Tokenizer& tokenizer);

// The text of a token in an answer, including that of markers. REQUIRES: 0 <= token < n_tokens().
std::string_view marked_piece(const Tokenizer& tokenizer, const ChatFormat& format, TokenId token);

}  // namespace infer
