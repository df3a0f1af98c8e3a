// The parts of OpenAI-style responses (plus a few members) that several endpoints share. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/server/answers.h"

namespace infer {

// "stop", "length", "error" or "cancelled".
std::string finish_word(FinishReason reason);

Json usage_json(const Usage& usage);
// For one choice: {"queue_ms", "prompt_n", "cached_n", "prompt_ms", "prompt_per_second", "predicted_n", "predicted_ms",
// "predicted_per_second"}, and {"draft_n", "draft_n_accepted"} if anything was drafted.
Json timings_json(const AnswerTimes& times, const Usage& usage, const DraftCounts& drafts);

// Tool calls of a whole message, and parts of them in a stream: {"index", "id", "type", "function": {"name",
// "arguments"}}, with id, type and name only in the first part of a call.
Json calls_json(const std::vector<CallRecord>& calls);
Json call_deltas_json(const std::vector<MessageDelta>& parts);

// {"content": [{"token", "logprob", "bytes", "top_logprobs"}, ...]}
Json chat_logprobs(const Tokenizer& tokenizer, const std::vector<TokenScore>& scores);
// A token's text as in OpenAI's text completions: unchanged if it consists of whole characters, otherwise its bytes, as
// in `bytes: \xe2\x96`, with ASCII left readable.
std::string token_text(std::string_view piece);
// {"tokens", "token_logprobs", "top_logprobs", "text_offset"}; advances `offset`, in characters of the text.
// top_logprobs is an object keyed by text, so of two tokens with the same text it has only the more probable one.
Json completion_logprobs(const Tokenizer& tokenizer, const std::vector<TokenScore>& scores, int64_t& offset);

// {"object": "list", "data": [{"embedding": ...}], ...}; vectors as arrays of numbers, or base64 of little-endian F32.
Json embedding_response(const std::string& model, const std::vector<std::vector<float>>& vectors, bool as_base64,
                        int64_t prompt_tokens);
std::string base64(std::string_view bytes);

// "data: {...}\n\n". Invalid UTF-8 in a text becomes U+FFFD.
std::string sse_event(const Json& json);
inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";
std::string json_text(const Json& json);

}  // namespace infer
