#include "tools/bench_serve/answer_stream.h"

#include <nlohmann/json.hpp>

#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "ggml-like/printable.h"

namespace infer {
namespace {

using nlohmann::json;

constexpr size_t kShownBytes = 200;

// A member of an object, or null.
const json& member(const json& object, const char* name) {
  static const json none;
  if (!object.is_object()) return none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

bool has_text(const json& value) { return value.is_string() && !value.get_ref<const std::string&>().empty(); }

// Whether a chunk's choice carries text: of a chat, of a completion, or reasoning under either of its usual names.
bool carries_text(const json& choice) {
  const json& delta = member(choice, "delta");
  return has_text(member(choice, "text")) || has_text(member(delta, "content")) ||
         has_text(member(delta, "reasoning_content")) || has_text(member(delta, "reasoning"));
}

void take_count(const json& value, std::optional<int64_t>& count) {
  if (value.is_number_integer() && value.get<int64_t>() >= 0) count = value.get<int64_t>();
}

}  // namespace

void AnswerStream::feed(std::string_view bytes, double now) {
  parser_.feed(bytes, [&](std::string_view data) { take(data, now); });
}

void AnswerStream::take(std::string_view data, double now) {
  if (done_) return;
  if (data == "[DONE]") {
    done_ = true;
    return;
  }
  const json chunk = json::parse(data, nullptr, false);
  if (!chunk.is_object()) {
    throw Error(ErrorCode::kInvalidArgument,
                expected_found("stream", "an event with a JSON object", printable(std::string(data.substr(0, 80)))));
  }
  if (!member(chunk, "error").is_null()) throw Error(ErrorCode::kInvalidArgument, "[server] " + error_message(data));
  const json& choices = member(chunk, "choices");
  if (choices.is_array()) {
    for (const json& choice : choices) {
      if (!carries_text(choice)) continue;
      times_.push_back(now);
      break;
    }
  }
  const json& usage = member(chunk, "usage");
  take_count(member(usage, "prompt_tokens"), prompt_tokens_);
  take_count(member(usage, "completion_tokens"), output_tokens_);
  take_count(member(member(usage, "prompt_tokens_details"), "cached_tokens"), cached_tokens_);
  const json& timings = member(chunk, "timings");
  take_count(member(timings, "draft_n"), drafted_tokens_);
  take_count(member(timings, "draft_n_accepted"), accepted_tokens_);
}

std::string error_message(std::string_view body) {
  const json document = json::parse(body, nullptr, false);
  const json& error = member(document, "error");
  const json& message = error.is_string() ? error : member(error, "message");
  if (has_text(message)) return printable(message.get<std::string>().substr(0, kShownBytes));
  return body.empty() ? "no message" : printable(std::string(body.substr(0, kShownBytes)));
}

}  // namespace infer
