// Between the tokens of a chat and its text: which tokens show, which texts stand for BOS and EOS in a template, and
// how a template ends an answer. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "src/text/chat_template.h"
#include "src/text/tokenizer.h"

namespace infer {

// What ends an answer where that is no end-of-generation token: models write it, and it is no part of the answer.
struct AnswerEnd {
  std::string text;          // "": no text ends an answer
  TokenId token = kNoToken;  // a control token that ends an answer
};

// Renders a conversation with an answer in it and looks at what follows the answer. At most one of the two is found;
// neither, when an end-of-generation token follows or the template does not take such a conversation.
AnswerEnd find_answer_end(const ChatTemplate& chat_template, const Tokenizer& tokenizer);

// The tokens that the vocabulary has for `bos_token` and `eos_token` of a template; "" for one it does not have.
std::string bos_text(const Tokenizer& tokenizer);
std::string eos_text(const Tokenizer& tokenizer);

// What an answer shows of a token: control tokens only where they mark reasoning. REQUIRES 0 <= token < n_tokens().
std::string_view shown_piece(const Tokenizer& tokenizer, TokenId token);

}  // namespace infer
