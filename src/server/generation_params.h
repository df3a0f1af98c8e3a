// How an answer is generated and reported, as a request says it: the members that chat and text completions share. Pure
// functions; any thread. They throw ApiError (400) that names the member.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/server/json_fields.h"
#include "src/text/sampler_params.h"

namespace infer {

// What one request may ask for.
struct RequestLimits {
  int32_t max_choices = 16;           // n, and of a completion prompts times n
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

// `least_tokens`: the smallest max_tokens that the route takes.
GenerationParams read_generation(const JsonFields& fields, const RequestContext& context, int64_t least_tokens);

// Token ids below `n_vocab`; `name` is the member that holds the array.
std::vector<TokenId> read_token_ids(const Json& array, const std::string& name, int32_t n_vocab);

}  // namespace infer
