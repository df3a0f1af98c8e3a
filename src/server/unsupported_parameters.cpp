#include "src/server/unsupported_parameters.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "ggml-like/error.h"

namespace infer {
namespace {

constexpr uint8_t kText = kChatRoute | kCompletionRoute;
constexpr uint8_t kAll = kText | kEmbeddingRoute;

constexpr const char* kConstrained = "Answers are not constrained to a schema, grammar or pattern.";
constexpr const char* kToolCalls = "Tool calls stay part of the text.";
constexpr const char* kTemplate = "Variables of the chat template go into chat_template_kwargs.";
constexpr const char* kReasoning = "Reasoning is not limited, and arrives as reasoning_content.";
constexpr const char* kTextOnly = "This server reads and writes text only.";
constexpr const char* kTokenIds = "Answers hold text; /tokenize gives token ids.";
constexpr const char* kNeverCut = "A prompt is never cut or moved within the context.";
constexpr const char* kDrafts = "There is no draft model.";
constexpr const char* kVectors = "Vectors are 32-bit floats of unit length.";

constexpr UnsupportedParameter kTable[] = {
    // Structured output.
    {"response_format", kText, R"([{"type": "text"}])", kConstrained},
    {"grammar", kText, R"([""])", kConstrained},
    {"grammar_lazy", kText, "[false]", kConstrained},
    {"grammar_triggers", kText, "[[]]", kConstrained},
    {"preserved_tokens", kText, "[[]]", kConstrained},
    {"json_schema", kText, "[]", kConstrained},
    {"structured_outputs", kText, "[{}]", kConstrained},
    {"structural_tag", kText, "[]", kConstrained},
    {"guided_json", kText, "[]", kConstrained},
    {"guided_regex", kText, R"([""])", kConstrained},
    {"guided_choice", kText, "[[]]", kConstrained},
    {"guided_grammar", kText, R"([""])", kConstrained},
    {"guided_decoding_backend", kText, "*",
     "It chooses how guided_json and similar constraints work, which are refused."},
    {"guided_whitespace_pattern", kText, "*", "It refines guided_json, which is refused."},
    // Tools.
    {"functions", kChatRoute, "[[]]", "Functions are offered as tools."},
    {"function_call", kChatRoute, R"(["auto", "none"])", "Functions are offered as tools."},
    {"parallel_tool_calls", kChatRoute, "[true]", "The number of tool calls in an answer is not limited."},
    {"parse_tool_calls", kChatRoute, "[false]", kToolCalls},
    {"chat_format", kChatRoute, "[]", kToolCalls},
    {"chat_parser", kChatRoute, "[]", kToolCalls},
    {"web_search_options", kChatRoute, "[]", "This server does not search the web."},
    // Reasoning and style.
    {"reasoning_effort", kChatRoute, R"(["medium"])", kTemplate},
    {"enable_thinking", kChatRoute, "[]", kTemplate},
    {"reasoning_format", kChatRoute, R"(["auto", "deepseek"])", kReasoning},
    {"reasoning_in_content", kChatRoute, "[false]", kReasoning},
    {"include_reasoning", kChatRoute, "[true]", kReasoning},
    {"thinking_forced_open", kChatRoute, "[false]", kReasoning},
    {"reasoning_budget", kText, "[-1]", kReasoning},
    {"reasoning_budget_tokens", kText, "[-1]", kReasoning},
    {"reasoning_budget_start_tag", kText, "*", "It refines reasoning_budget_tokens, which is refused."},
    {"reasoning_budget_end_tag", kText, "*", "It refines reasoning_budget_tokens, which is refused."},
    {"reasoning_budget_message", kText, "*", "It refines reasoning_budget_tokens, which is refused."},
    {"reasoning_budget_arm_immediately", kText, "*", "It refines reasoning_budget_tokens, which is refused."},
    {"thinking_budget_tokens", kText, "[-1]", kReasoning},
    {"thinking_token_budget", kText, "[-1]", kReasoning},
    {"verbosity", kChatRoute, R"(["medium"])", "How long an answer is, the messages have to ask for."},
    // Other media.
    {"modalities", kChatRoute, R"([["text"]])", kTextOnly},
    {"audio", kChatRoute, "[]", kTextOnly},
    {"image_data", kText, "[[]]", kTextOnly},
    {"mm_processor_kwargs", kAll, "[{}]", kTextOnly},
    // Sampling.
    {"use_beam_search", kText, "[false]", "There is no beam search."},
    {"length_penalty", kText, "[1]", "There is no beam search."},
    {"best_of", kChatRoute, "[1]", "Answers are not ranked; n asks for several."},
    {"min_tokens", kText, "[0]", "An answer may end at once; ignore_eos with max_tokens fixes its length."},
    {"min_keep", kText, "[0, 1]", "Every sampler keeps at least one token, and no more are guaranteed."},
    {"allowed_token_ids", kText, "[]", "Tokens are allowed or forbidden by logit_bias alone."},
    {"bad_words", kText, "[[]]", "Tokens are allowed or forbidden by logit_bias alone."},
    {"logits_processors", kText, "[[]]", "Tokens are allowed or forbidden by logit_bias alone."},
    {"adaptive_target", kText, "[-1]", "There is no such sampler."},
    {"adaptive_decay", kText, "*", "It refines adaptive_target, which is refused."},
    {"tfs_z", kText, "[1]", "There is no such sampler."},
    {"penalize_nl", kText, "[true]", "Line breaks are penalized like every token."},
    {"penalty_prompt", kText, "[]", "Penalties count the prompt itself."},
    {"backend_sampling", kText, "[false]", "Where tokens are sampled is not for a request to choose."},
    {"lora", kText, "[[]]", "There are no adapters."},
    {"n_indent", kText, "[0]", "An answer ends by stop, stop_token_ids and max_tokens."},
    {"t_max_predict_ms", kText, "[0, -1]", "An answer ends by stop, stop_token_ids and max_tokens."},
    {"t_max_prompt_ms", kText, "[0, -1]", "The time of a request is limited by the server's --timeout."},
    {"vllm_xargs", kText, "[{}]", "There are no extensions."},
    // What a response holds.
    {"n_probs", kText, "[0]", "Log-probabilities are asked for by logprobs."},
    {"post_sampling_probs", kText, "[false]", "Log-probabilities are those before sampling."},
    {"prompt_logprobs", kText, "[]", "A prompt's log-probabilities come with echo and logprobs of a text completion."},
    {"echo", kChatRoute, "[false]", "The answer alone is sent; /v1/completions has echo."},
    {"return_tokens", kText, "[false]", kTokenIds},
    {"return_token_ids", kText, "[false]", kTokenIds},
    {"return_tokens_as_token_ids", kText, "[false]", kTokenIds},
    {"include_stop_str_in_output", kText, "[false]", "A stop string is never part of the answer."},
    {"skip_special_tokens", kText, "[true]", "Control tokens are never part of the answer."},
    {"spaces_between_special_tokens", kText, "*", "It refines skip_special_tokens, which is refused."},
    {"timings_per_token", kText, "[false]", "Times come with timings, at the end of the answer."},
    {"return_progress", kText, "[false]", "A stream begins with the answer."},
    {"response_fields", kText, "[[]]", "A response has all of its members."},
    {"stream_options.include_obfuscation", kText, "[false]", "Chunks are sent as they are; TLS hides their contents."},
    {"stream_options.continuous_usage_stats", kText, "[false]", "The usage comes once, at the end of a stream."},
    // The prompt.
    {"suffix", kCompletionRoute, R"([""])", "Text is completed at its end only."},
    {"prompt_embeds", kCompletionRoute, "[]", "A prompt is text or token ids."},
    {"truncate_prompt_tokens", kAll, "[]", kNeverCut},
    {"truncation_side", kAll, "*", "It refines truncate_prompt_tokens, which is refused."},
    {"n_keep", kText, "[0, -1]", kNeverCut},
    {"n_discard", kText, "[0]", kNeverCut},
    {"add_special_tokens", kChatRoute, "[false]", "The template writes the special tokens of a chat."},
    {"add_special_tokens", kCompletionRoute | kEmbeddingRoute, "[true]",
     "Text gets the vocabulary's special tokens; token ids are taken as they are."},
    {"documents", kChatRoute, "[[]]", kTemplate},
    {"chat_template", kChatRoute | kEmbeddingRoute, "[]", "The server's --chat-template chooses the template."},
    {"chat_template_content_format", kChatRoute, R"(["auto", "string"])", "Templates get a message's content as text."},
    // Cache, slots and speed.
    {"id_slot", kText, "[-1]", "There are no slots; every request shares the prefix cache."},
    {"n_cache_reuse", kText, "[0]", "Cached prefixes are reused from their beginning only."},
    {"kv_transfer_params", kText, "[{}]", "The KV cache is not shared with other servers."},
    {"prediction", kChatRoute, "[]", kDrafts},
    {"speculative.n_max", kText, "[0]", kDrafts},
    {"speculative.n_min", kText, "[0]", kDrafts},
    {"speculative.p_min", kText, "*", "It refines speculative.n_max, which is refused."},
    {"speculative.type", kText, R"(["none"])", kDrafts},
    {"speculative.ngram_size_n", kText, "*", "It refines speculative.type, which is refused."},
    {"speculative.ngram_size_m", kText, "*", "It refines speculative.type, which is refused."},
    {"speculative.ngram_m_hits", kText, "*", "It refines speculative.type, which is refused."},
    // Accounts. What only tells the provider who asks, or where to look for cached prompts, changes no answer.
    {"store", kChatRoute, "[false]", "Answers are not stored."},
    {"service_tier", kText, R"(["auto", "default"])", "There are no tiers; priority puts a request before others."},
    {"prompt_cache_retention", kText, R"(["in_memory", "in-memory"])", "Prompts stay cached until the room is needed."},
    {"prompt_cache_key", kText, "*", "Prompts are found in the cache by their tokens."},
    {"metadata", kText, "*", "Neither answers nor notes about them are stored."},
    {"safety_identifier", kText, "*", "Users are not told apart."},
    {"request_id", kAll, "[]", "The server names requests itself, in X-Request-Id."},
    // Embeddings.
    {"content", kEmbeddingRoute, "[]", "The texts go into input."},
    {"messages", kEmbeddingRoute, "[]", "The texts go into input; /apply-template turns messages into text."},
    {"additional_data", kEmbeddingRoute, "[]", "Nothing but the vectors is returned."},
    {"embd_normalize", kEmbeddingRoute, "[2]", kVectors},
    {"normalize", kEmbeddingRoute, "[true]", kVectors},
    {"embed_dtype", kEmbeddingRoute, R"(["float32"])", kVectors},
    {"endianness", kEmbeddingRoute, R"(["native", "little"])", "Base64 is of little-endian numbers."},
    {"activation", kEmbeddingRoute, "[true]", kVectors},
    {"softmax", kEmbeddingRoute, "[false]", kVectors},
    {"use_activation", kEmbeddingRoute, "[true]", kVectors},
};

struct Row {
  const UnsupportedParameter* parameter;
  Json neutral;  // an array, or null for any value
};
using Rows = std::unordered_multimap<std::string_view, Row>;

const Rows& rows() {
  static const Rows all = [] {
    Rows built;
    for (const UnsupportedParameter& p : kTable) {
      const bool any = std::string_view(p.neutral) == "*";
      built.emplace(p.name, Row{&p, any ? Json() : Json::parse(p.neutral)});
    }
    return built;
  }();
  return all;
}

}  // namespace

std::span<const UnsupportedParameter> unsupported_parameters() { return kTable; }

void refuse_unsupported(const Json& object, ApiRoute route, const std::string& path) {
  for (const auto& [member, value] : object.items()) {
    if (value.is_null()) continue;
    const std::string name = path + member;
    const auto [begin, end] = rows().equal_range(name);
    for (auto row = begin; row != end; ++row) {
      const auto& [parameter, neutral] = row->second;
      if (!(parameter->routes & route) || neutral.is_null()) continue;
      if (std::find(neutral.begin(), neutral.end(), value) != neutral.end()) continue;
      const std::string way_out =
          neutral.empty() ? " Leave it out." : concat(" Leave it out or send ", neutral.front().dump(), ".");
      throw invalid_parameter(name, parameter->reason + way_out, "unsupported_parameter");
    }
  }
}

}  // namespace infer
