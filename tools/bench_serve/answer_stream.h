// The contents and timing of one streamed answer from an OpenAI endpoint. It is fed the bytes of the response body and
// the time each piece arrived; no sockets and no clock here. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/bench_serve/sse_parser.h"

namespace infer {

class AnswerStream {
 public:
  // `now`: seconds of any steady clock. Throws Error(kInvalidArgument) for events that are not chunks of an answer, and
  // for an error that the server reports in mid-stream.
  void feed(std::string_view bytes, double now);

  bool done() const { return done_; }                          // the server sent the end marker
  const std::vector<double>& times() const { return times_; }  // of the chunks with text
  // As counted by the server; if it does not report them, one token per chunk with text, and no prompt tokens.
  int64_t prompt_tokens() const { return prompt_tokens_.value_or(0); }
  int64_t cached_tokens() const { return cached_tokens_.value_or(0); }
  int64_t drafted_tokens() const { return drafted_tokens_.value_or(0); }
  int64_t accepted_tokens() const { return accepted_tokens_.value_or(0); }
  int64_t output_tokens() const { return output_tokens_.value_or(static_cast<int64_t>(times_.size())); }

 private:
  void take(std::string_view data, double now);

  SseParser parser_;
  bool done_ = false;
  std::vector<double> times_;
  std::optional<int64_t> prompt_tokens_, cached_tokens_, output_tokens_, drafted_tokens_, accepted_tokens_;
};

// The message of an OpenAI error object, {"error": {"message": ...}}; otherwise the beginning of the body.
std::string error_message(std::string_view body);

}  // namespace infer
