// What clients ask of the server, as plain data, and how it is read from JSON. Pure functions; any thread. They throw
// ApiError (400) that names the member of the request, also for parameters that other servers implement and this one
// does not (unsupported_parameters.h); members that nobody defines are ignored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "src/engine/request.h"
#include "src/server/generation_params.h"
#include "src/text/chat_template.h"

namespace infer {

using Prompt = std::variant<std::string, std::vector<TokenId>>;

// What a prompt is made of.
struct ChatPromptRequest {
  Conversation conversation;  // without BOS and EOS texts
  // The last message is the beginning of the answer, though the request does not say continue_final_message.
  bool continue_answer = false;
};

struct ChatRequest {
  GenerationParams generation;
  ChatPromptRequest prompt;
};

struct CompletionRequest {
  GenerationParams generation;
  std::vector<Prompt> prompts;  // at least one
  bool echo = false;
};

// Error(kInvalidArgument) for other names than mean, last, cls.
Pooling parse_pooling(std::string_view name);

struct EmbeddingRequest {
  GenerationParams generation;  // how it is scheduled; the rest does not count
  std::vector<Prompt> inputs;   // at least one
  bool base64 = false;
  std::optional<int64_t> dimensions;  // the first so many numbers of a vector
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
// The conversation of a chat request, without the rest: roles, contents and calls are checked, members that are null
// left out, and content is a string or a list of text parts. In conversation.cpp.
ChatPromptRequest parse_conversation(const Json& body, const RequestContext& context);

}  // namespace infer
