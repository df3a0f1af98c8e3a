#include "src/server/requests.h"

#include <algorithm>
#include <limits>

#include "ggml-like/error.h"
#include "src/server/constraints.h"
#include "src/server/unsupported_parameters.h"

namespace infer {
namespace {

// A string, an array of strings, an array of token ids, or an array of such arrays.
std::vector<Prompt> read_prompts(const JsonFields& fields, const char* name, int32_t n_vocab) {
  const char* expected = "a string, an array of strings, or token ids";
  const Json* value = fields.find(name);
  if (!value) fields.refuse(name, expected);
  // Constructed in place: libstdc++ 12 treats a variant whose copy failed to allocate as valid.
  std::vector<Prompt> prompts;
  if (value->is_string()) {
    prompts.emplace_back(value->get<std::string>());
    return prompts;
  }
  if (!value->is_array() || value->empty()) fields.refuse(name, expected);
  if (value->front().is_number()) {
    prompts.emplace_back(read_token_ids(*value, name, n_vocab));
    return prompts;
  }
  for (const Json& entry : *value) {
    if (entry.is_string()) {
      prompts.emplace_back(entry.get<std::string>());
    } else if (entry.is_array() && !entry.empty()) {
      prompts.emplace_back(read_token_ids(entry, name, n_vocab));
    } else {
      throw unexpected_value(name, expected, describe_json(entry) + " in the array");
    }
  }
  return prompts;
}

void refuse_unsupported_generation(const Json& body, ApiRoute route) {
  refuse_unsupported(body, route);
  const auto options = body.find("stream_options");
  if (options != body.end() && options->is_object()) refuse_unsupported(*options, route, "stream_options.");
}

// A constrained answer ends where its constraint does, so ignore_eos is refused with one. Calls that are merely allowed
// are not constrained then.
void check_end(AnswerConstraint& constraint, const GenerationParams& generation) {
  if (!generation.ignore_eog) return;
  if (constraint.calls.mode == CallConstraint::Mode::kAllowed) constraint.calls.mode = CallConstraint::Mode::kFree;
  if (!constraint.free())
    throw invalid_parameter("ignore_eos", "use it without required calls and without a constraint of the answer");
}

}  // namespace

ChatRequest parse_chat_request(const Json& body, const RequestContext& context) {
  refuse_unsupported_generation(body, kChatRoute);
  const JsonFields fields(body);
  ChatRequest request;
  request.prompt = parse_conversation(body, context);
  request.generation = read_generation(fields, context, 1);
  request.constraint.content = read_content_constraint(fields, context);
  request.constraint.calls = read_tools(fields, context).calls;
  check_end(request.constraint, request.generation);
  const auto top = fields.integer("top_logprobs", 0, context.limits.max_top_logprobs);
  const bool wants = fields.boolean("logprobs", false);
  if (top.value_or(0) > 0 && !wants) throw invalid_parameter("top_logprobs", "use it only together with logprobs");
  if (wants) request.generation.top_logprobs = static_cast<int>(top.value_or(0));
  return request;
}

CompletionRequest parse_completion_request(const Json& body, const RequestContext& context) {
  refuse_unsupported_generation(body, kCompletionRoute);
  const JsonFields fields(body);
  CompletionRequest request;
  request.generation = read_generation(fields, context, 0);
  request.constraint.content = read_content_constraint(fields, context);
  check_end(request.constraint, request.generation);
  GenerationParams& g = request.generation;
  request.prompts = read_prompts(fields, "prompt", context.n_vocab);
  if (request.prompts.size() * static_cast<size_t>(g.n) > static_cast<size_t>(context.limits.max_choices)) {
    throw unexpected_value("prompt", concat("at most ", context.limits.max_choices, " choices (prompts times n)"),
                           concat(request.prompts.size() * static_cast<size_t>(g.n)));
  }
  if (const auto best = fields.integer("best_of", 1, kMostTokens); best && *best != g.n) {
    throw invalid_parameter("best_of", concat("must equal n (", g.n, "): answers are not ranked"),
                            "unsupported_parameter");
  }
  request.echo = fields.boolean("echo", false);
  if (const Json* logprobs = fields.find("logprobs"); logprobs && !logprobs->is_boolean()) {
    g.top_logprobs = static_cast<int>(*fields.integer("logprobs", 0, context.limits.max_top_logprobs));
  } else if (logprobs && logprobs->get<bool>()) {
    g.top_logprobs = 0;
  }
  return request;
}

EmbeddingRequest parse_embedding_request(const Json& body, const RequestContext& context) {
  refuse_unsupported(body, kEmbeddingRoute);
  const JsonFields fields(body);
  EmbeddingRequest request;
  fields.text("model");
  fields.text("user");
  request.inputs = read_prompts(fields, "input", context.n_vocab);
  if (request.inputs.size() > context.limits.max_inputs) {
    fields.refuse("input", concat("at most ", context.limits.max_inputs, " inputs"));
  }
  const std::string format = fields.text("encoding_format").value_or("float");
  if (format != "float" && format != "base64") fields.refuse("encoding_format", "\"float\" or \"base64\"");
  request.base64 = format == "base64";
  request.dimensions = fields.integer("dimensions", 1, kMostTokens);
  read_scheduling(fields, context.limits, request.generation);
  if (const auto pooling = fields.text("pooling")) {
    request.pooling = pooling_of(*pooling);
    if (!request.pooling || request.pooling == Pooling::kRank) {
      fields.refuse("pooling", "\"mean\", \"last\" or \"cls\"");
    }
  }
  return request;
}

TokenizeRequest parse_tokenize_request(const Json& body) {
  const JsonFields fields(body);
  TokenizeRequest request;
  const auto content = fields.text("content");
  if (!content) fields.refuse("content", "a string");
  request.content = *content;
  request.add_special = fields.boolean("add_special", false);
  request.parse_special = fields.boolean("parse_special", true);
  request.with_pieces = fields.boolean("with_pieces", false);
  return request;
}

std::vector<TokenId> parse_detokenize_request(const Json& body, const RequestContext& context) {
  const JsonFields fields(body);
  const Json* tokens = fields.array("tokens", SIZE_MAX);
  if (!tokens) fields.refuse("tokens", "an array of token ids");
  return read_token_ids(*tokens, "tokens", context.n_vocab);
}

}  // namespace infer
