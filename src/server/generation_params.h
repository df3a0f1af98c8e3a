// The parameters of generation and reporting in a request: the members that chat and text completions share. Pure
// functions; any thread. They throw ApiError (400) naming the member.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/server/json_fields.h"
#include "src/text/sampler_params.h"

namespace infer {

inline constexpr int64_t kMostTokens = INT32_MAX;  // the largest number of tokens that a request can name

// The limits on one request.
struct RequestLimits {
  int32_t max_choices = 16;  // for n, and for prompts times n in a completion request
  int32_t max_priority = 0;
  int32_t default_max_tokens = -1;  // for requests without a limit; -1: to the end of the context
  size_t max_messages = 4096;
  size_t max_stops = 128, max_stop_bytes = 256;
  size_t max_stop_tokens = 1024;
  size_t max_logit_biases = 1024;
  size_t max_inputs = 2048;  // in an embedding request
  int max_top_logprobs = 20;
  int max_depth = 256;  // of nested JSON
};

// What is needed to read a request.
struct RequestContext {
  RequestLimits limits;
  SamplingParams sampling;  // the defaults
  int32_t n_vocab = 0;
  bool schema_lenient = false;  // keywords of schemas that cannot be enforced are ignored
  std::function<std::vector<TokenId>(std::string_view text)> tokenize;  // plain text, without special tokens
  Json template_variables = {};  // of all requests, object or null; a request's own take precedence
};

// How answers are generated and reported; the same for both kinds of completion.
struct GenerationParams {
  SamplingParams sampling;
  int32_t n = 1;
  int32_t max_tokens = -1;  // -1: to the end of the context
  bool ignore_eog = false;
  std::vector<std::string> stop;
  std::vector<TokenId> stop_tokens;
  std::optional<int> top_logprobs;  // alternatives reported per token; nullopt: no log-probabilities
  int32_t max_drafts = INT32_MAX;   // as in Request
  int32_t priority = 0;
  std::string cache_salt;
  bool reuse_prefix = true;  // false: no part of the prompt comes from the cache
  bool stream = false, include_usage = false, timings = false;
};

// `least_tokens`: the smallest max_tokens the route accepts, besides -1.
GenerationParams read_generation(const JsonFields& fields, const RequestContext& context, int64_t least_tokens);

// Reads how a request is scheduled and what it shares with others: priority, cache_salt, cache_prompt.
void read_scheduling(const JsonFields& fields, const RequestLimits& limits, GenerationParams& params);

// Reads token ids below `n_vocab`; `name` is the member with the array.
std::vector<TokenId> read_token_ids(const Json& array, const std::string& name, int32_t n_vocab);

}  // namespace infer
