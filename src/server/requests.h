// Client requests as plain data, and how they are read from JSON. Pure functions; any thread. They throw ApiError (400)
// naming the member of the request, including for parameters that other servers implement and this one does not
// (unsupported_parameters.h). Unknown members are ignored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "src/engine/request.h"
#include "src/server/generation_params.h"
#include "src/text/answer_grammar.h"
#include "src/text/chat_template.h"

namespace infer {

using Prompt = std::variant<std::string, std::vector<TokenId>>;

// The input of a prompt.
struct ChatPromptRequest {
  Conversation conversation;  // without BOS and EOS texts
  // The last message is the beginning of the answer, even though the request does not set continue_final_message.
  bool continue_answer = false;
};

struct ChatRequest {
  GenerationParams generation;
  ChatPromptRequest prompt;
  AnswerConstraint constraint;  // without the reasoning, which depends on the rendered prompt
};

struct CompletionRequest {
  GenerationParams generation;
  std::vector<Prompt> prompts;  // at least one
  bool echo = false;
  AnswerConstraint constraint;
};

struct EmbeddingRequest {
  GenerationParams generation;  // how it is scheduled; the rest is unused
  std::vector<Prompt> inputs;   // at least one
  bool base64 = false;
  std::optional<int64_t> dimensions;  // truncate each vector to this length
  std::optional<Pooling> pooling;     // not kNone
};

struct TokenizeRequest {
  std::string content;
  bool add_special = false, parse_special = true, with_pieces = false;
};

ChatRequest parse_chat_request(const Json& body, const RequestContext& context);
CompletionRequest parse_completion_request(const Json& body, const RequestContext& context);
EmbeddingRequest parse_embedding_request(const Json& body, const RequestContext& context);
TokenizeRequest parse_tokenize_request(const Json& body);
std::vector<TokenId> parse_detokenize_request(const Json& body, const RequestContext& context);
// Only the conversation of a chat request: roles, content and calls are checked, null members are removed, and content
// is a string or a list of text parts. Defined in conversation.cpp.
ChatPromptRequest parse_conversation(const Json& body, const RequestContext& context);

}  // namespace infer
