// What clients ask of the server, as plain data, and how it is read from JSON. Pure functions; any thread. They throw
// ApiError (400) that names the member of the request; members they do not know are ignored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "src/engine/request.h"
#include "src/server/json_fields.h"
#include "src/text/chat_template.h"
#include "src/text/sampler_params.h"

namespace infer {

// What one request may ask for.
struct RequestLimits {
  int32_t max_choices = 16;  // n, and of a completion prompts times n
  int32_t max_priority = 0;
  int32_t default_max_tokens = 1024;  // of an answer, where the request does not say
  size_t max_messages = 4096;
  size_t max_stops = 16, max_stop_bytes = 256;
  size_t max_logit_biases = 1024;
  size_t max_inputs = 256;  // prompts of an embedding request
  int max_top_logprobs = 20;
  int max_depth = 64;  // of the JSON
};

// What a request is read against.
struct RequestContext {
  RequestLimits limits;
  SamplingParams sampling;  // what a request does not say
  int32_t n_vocab = 0;
};

// How answers are made and reported, the same for both kinds of generation.
struct GenerationParams {
  SamplingParams sampling;
  int32_t n = 1;
  int32_t max_tokens = 0;
  bool ignore_eog = false;
  std::vector<std::string> stop;
  std::optional<int> top_logprobs;  // how many tokens beside the chosen one; nullopt: no log-probabilities at all
  int32_t priority = 0;
  std::string cache_salt;
  bool stream = false, include_usage = false, timings = false;
};

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
  std::vector<Prompt> inputs;  // at least one
  bool base64 = false;
  std::optional<int64_t> dimensions;
  std::optional<Pooling> pooling;  // not kNone
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
