// Connects the tokens of a chat with its text: which tokens are shown, the texts of BOS and EOS in a template, and how
// a template ends an answer. Thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "src/text/chat_template.h"
#include "src/text/tokenizer.h"

namespace infer {

// What ends an answer besides end-of-generation tokens: the model writes it, but it is not part of the answer.
struct AnswerEnd {
  std::string text;          // "": none
  TokenId token = kNoToken;  // a control token that ends an answer
};

// Renders a conversation that contains an answer and looks at what follows the answer. Finds at most one of the two;
// neither if an end-of-generation token follows or the template rejects such a conversation.
AnswerEnd find_answer_end(const ChatTemplate& chat_template, const Tokenizer& tokenizer);

// The texts of the vocabulary's BOS and EOS tokens, for `bos_token` and `eos_token` of a template; "" if there is none.
std::string bos_text(const Tokenizer& tokenizer);
std::string eos_text(const Tokenizer& tokenizer);

// An answer's text for a token; control tokens show only if they mark reasoning. REQUIRES: 0 <= token < n_tokens().
std::string_view shown_piece(const Tokenizer& tokenizer, TokenId token);

}  // namespace infer
