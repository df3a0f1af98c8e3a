#include "src/server/unsupported_parameters.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "ggml-like/error.h"

namespace infer {
namespace {

constexpr uint8_t kText = kChatRoute | kCompletionRoute;
constexpr uint8_t kAll = kText | kEmbeddingRoute;

constexpr const char* kTemplateFormat = "The format of calls is that of the model's chat template.";
constexpr const char* kTemplate = "Pass variables of the chat template in chat_template_kwargs.";
constexpr const char* kReasoning = "Reasoning is not limited, and arrives as reasoning_content.";
constexpr const char* kTextOnly = "This server reads and writes text only.";
constexpr const char* kTokenIds = "Answers contain text; /tokenize gives token ids.";
constexpr const char* kNeverCut = "This server never truncates or shifts a prompt.";
constexpr const char* kDrafts = "Drafting is set by the server's flags; speculative.n_max limits it.";
constexpr const char* kVectors = "Vectors are 32-bit floats of unit length.";

constexpr UnsupportedParameter kTable[] = {
    // Structured output.
    {"preserved_tokens", kText, "*", "Control tokens that a grammar names are always kept."},
    {"structural_tag", kText, "[]", "Send a grammar instead."},
    {"guided_decoding_backend", kText, "*", "There is only one backend for constraints."},
    {"guided_whitespace_pattern", kText, "[]", "White space in JSON is either unconstrained or compact."},
    // Tools.
    {"functions", kChatRoute, "[[]]", "Pass functions as tools."},
    {"function_call", kChatRoute, R"(["auto", "none"])", "Pass functions as tools."},
    {"parse_tool_calls", kChatRoute, "[true]", "Calls of offered tools are always found in the answer."},
    {"chat_format", kChatRoute, "[]", kTemplateFormat},
    {"chat_parser", kChatRoute, "[]", kTemplateFormat},
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
    {"verbosity", kChatRoute, R"(["medium"])", "Ask for the length of an answer in the messages."},
    // Other media.
    {"modalities", kChatRoute, R"([["text"]])", kTextOnly},
    {"audio", kChatRoute, "[]", kTextOnly},
    {"image_data", kText, "[[]]", kTextOnly},
    {"mm_processor_kwargs", kAll, "[{}]", kTextOnly},
    // Sampling.
    {"use_beam_search", kText, "[false]", "There is no beam search."},
    {"length_penalty", kText, "[1]", "There is no beam search."},
    {"best_of", kChatRoute, "[1]", "Answers are not ranked; n asks for several."},
    {"min_tokens", kText, "[0]", "For answers of a fixed length, use ignore_eos with max_tokens."},
    {"min_keep", kText, "[0, 1]", "Every sampler keeps at least one token."},
    {"allowed_token_ids", kText, "[]", "To allow or forbid tokens, use logit_bias."},
    {"bad_words", kText, "[[]]", "To allow or forbid tokens, use logit_bias."},
    {"logits_processors", kText, "[[]]", "To allow or forbid tokens, use logit_bias."},
    {"adaptive_target", kText, "[-1]", "This server does not have that sampler."},
    {"adaptive_decay", kText, "*", "It refines adaptive_target, which is refused."},
    {"tfs_z", kText, "[1]", "This server does not have that sampler."},
    {"penalize_nl", kText, "[true]", "Line breaks are penalized like any other token."},
    {"penalty_prompt", kText, "[]", "Penalties always cover the prompt."},
    {"backend_sampling", kText, "[false]", "A request cannot choose where tokens are sampled."},
    {"lora", kText, "[[]]", "This server has no adapters."},
    {"n_indent", kText, "[0]", "To end an answer, use stop, stop_token_ids and max_tokens."},
    {"t_max_predict_ms", kText, "[0, -1]", "To end an answer, use stop, stop_token_ids and max_tokens."},
    {"t_max_prompt_ms", kText, "[0, -1]", "The server's --timeout limits the time of a request."},
    {"vllm_xargs", kText, "[{}]", "This server has no extensions."},
    // Contents of a response.
    {"n_probs", kText, "[0]", "For log-probabilities, use logprobs."},
    {"post_sampling_probs", kText, "[false]", "Log-probabilities are always those before sampling."},
    {"prompt_logprobs", kText, "[]", "For a prompt's log-probabilities, use echo and logprobs with /v1/completions."},
    {"echo", kChatRoute, "[false]", "Only /v1/completions has echo."},
    {"return_tokens", kText, "[false]", kTokenIds},
    {"return_token_ids", kText, "[false]", kTokenIds},
    {"return_tokens_as_token_ids", kText, "[false]", kTokenIds},
    {"include_stop_str_in_output", kText, "[false]", "A stop string is never part of the answer."},
    {"skip_special_tokens", kText, "[true]", "Control tokens are never part of the answer."},
    {"spaces_between_special_tokens", kText, "*", "It refines skip_special_tokens, which is refused."},
    {"timings_per_token", kText, "[false]", "Timings come at the end of the answer, with timings."},
    {"return_progress", kText, "[false]", "This server does not report the progress of a prompt."},
    {"response_fields", kText, "[[]]", "A response always has all of its members."},
    {"stream_options.include_obfuscation", kText, "[false]", "Chunks are not padded."},
    {"stream_options.continuous_usage_stats", kText, "[false]", "Usage is sent once, at the end of a stream."},
    // The prompt.
    {"suffix", kCompletionRoute, R"([""])", "Text is completed only at its end."},
    {"prompt_embeds", kCompletionRoute, "[]", "Send the prompt as text or token ids."},
    {"truncate_prompt_tokens", kAll, "[]", kNeverCut},
    {"truncation_side", kAll, "*", "It refines truncate_prompt_tokens, which is refused."},
    {"n_keep", kText, "[0, -1]", kNeverCut},
    {"n_discard", kText, "[0]", kNeverCut},
    {"add_special_tokens", kChatRoute, "[false]", "The chat template adds the special tokens."},
    {"add_special_tokens", kCompletionRoute | kEmbeddingRoute, "[true]",
     "Special tokens are added to text, and never to token ids."},
    {"documents", kChatRoute, "[[]]", kTemplate},
    {"chat_template", kChatRoute | kEmbeddingRoute, "[]", "The server's --chat-template chooses the template."},
    {"chat_template_content_format", kChatRoute, R"(["auto", "string"])",
     "Templates receive a message's content as text."},
    // Cache, slots and speed.
    {"id_slot", kText, "[-1]", "This server has no slots; every request shares the prefix cache."},
    {"n_cache_reuse", kText, "[0]", "Cached prefixes are reused from their beginning only."},
    {"kv_transfer_params", kText, "[{}]", "The KV cache is not shared with other servers."},
    {"prediction", kChatRoute, "[]", "A server started with --spec lookup finds repeated text by itself."},
    {"speculative.n_min", kText, "[0]", kDrafts},
    {"speculative.p_min", kText, "[0]", kDrafts},
    {"speculative.type", kText, R"(["none"])", kDrafts},
    {"speculative.ngram_size_n", kText, "*", "It refines speculative.type, which is refused."},
    {"speculative.ngram_size_m", kText, "*", "It refines speculative.type, which is refused."},
    {"speculative.ngram_m_hits", kText, "*", "It refines speculative.type, which is refused."},
    // Accounts. Parameters that only identify the caller or help find cached prompts change no answer.
    {"store", kChatRoute, "[false]", "Answers are not stored."},
    {"service_tier", kText, R"(["auto", "default"])", "This server has no tiers; use priority."},
    {"prompt_cache_retention", kText, R"(["in_memory", "in-memory"])", "Prompts stay cached until memory is needed."},
    {"prompt_cache_key", kText, "*", "Prompts are found in the cache by their tokens."},
    {"metadata", kText, "*", "Answers and metadata are not stored."},
    {"safety_identifier", kText, "*", "This server does not distinguish users."},
    {"request_id", kAll, "[]", "The server chooses request ids and sends them in X-Request-Id."},
    // Embeddings.
    {"content", kEmbeddingRoute, "[]", "Send the texts in input."},
    {"messages", kEmbeddingRoute, "[]", "Send the texts in input; /apply-template renders messages as text."},
    {"additional_data", kEmbeddingRoute, "[]", "Only the vectors are returned."},
    {"embd_normalize", kEmbeddingRoute, "[2]", kVectors},
    {"normalize", kEmbeddingRoute, "[true]", kVectors},
    {"embed_dtype", kEmbeddingRoute, R"(["float32"])", kVectors},
    {"endianness", kEmbeddingRoute, R"(["native", "little"])", "Base64 data is little-endian."},
    {"activation", kEmbeddingRoute, "[true]", kVectors},
    {"softmax", kEmbeddingRoute, "[false]", kVectors},
    {"use_activation", kEmbeddingRoute, "[true]", kVectors},
};

struct Row {
  const UnsupportedParameter* parameter;
  Json neutral;  // an array; null for any value
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
