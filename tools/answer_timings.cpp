#include "tools/answer_timings.h"

#include <cstdio>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"

namespace infer {
namespace {

std::string rate(int64_t tokens, double seconds) {
  const double value = seconds > 0 ? static_cast<double>(tokens) / seconds : 0.0;
  char text[32];
  std::snprintf(text, sizeof(text), value < 99.95 ? "%.1f" : "%.0f", value);
  return text;
}

std::string token_count(int64_t tokens) {
  return concat(grouped(static_cast<uint64_t>(tokens)), tokens == 1 ? " token" : " tokens");
}

}  // namespace

std::string short_summary(const AnswerTimings& t) {
  const std::string cached =
      t.cached_tokens > 0 ? concat(" (", grouped(static_cast<uint64_t>(t.cached_tokens)), " cached)") : "";
  return concat("prompt ", token_count(t.prompt_tokens), cached, ", ", rate(t.computed_tokens, t.prompt_seconds),
                "/s · answer ", token_count(t.generated_tokens), ", ", rate(t.decode_tokens, t.decode_seconds), "/s");
}

std::string full_summary(const AnswerTimings& t) {
  return concat("prompt ", t.prompt_tokens, " tokens, ", t.cached_tokens, " from the cache, ", t.computed_tokens,
                " computed, ", rate(t.computed_tokens, t.prompt_seconds), " tokens/s | generated ", t.generated_tokens,
                " tokens, ", rate(t.decode_tokens, t.decode_seconds), " tokens/s");
}

}  // namespace infer
