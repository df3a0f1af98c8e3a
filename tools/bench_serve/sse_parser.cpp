#include "tools/bench_serve/sse_parser.h"

#include "ggml-like/error.h"
#include "ggml-like/message.h"

namespace infer {

void SseParser::feed(std::string_view bytes, const std::function<void(std::string_view data)>& event) {
  for (const char c : bytes) {
    const bool second_half = after_return_ && c == '\n';
    after_return_ = c == '\r';
    if (second_half) continue;
    if (c == '\n' || c == '\r') {
      end_line(event);
      continue;
    }
    if (line_.size() + data_.size() >= max_event_bytes_) {
      throw Error(ErrorCode::kInvalidArgument,
                  expected_found("stream", concat("an event of at most ", max_event_bytes_, " bytes"), "a longer one"));
    }
    line_ += c;
  }
}

void SseParser::end_line(const std::function<void(std::string_view data)>& event) {
  std::string_view line = line_;
  if (first_line_ && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  first_line_ = false;
  if (line.empty()) {
    if (has_data_) {
      const std::string data = std::move(data_);
      data_.clear();
      has_data_ = false;
      line_.clear();
      event(data);
      return;
    }
  } else {
    const size_t colon = line.find(':');  // 0: a comment
    if (line.substr(0, colon) == "data") {
      std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
      if (value.starts_with(' ')) value.remove_prefix(1);
      if (has_data_) data_ += '\n';
      data_ += value;
      has_data_ = true;
    }
  }
  line_.clear();
}

}  // namespace infer
