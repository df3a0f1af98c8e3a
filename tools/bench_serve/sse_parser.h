// Incremental parser for server-sent events, as an OpenAI endpoint streams them. Only an event's data is used. Format:
// WHATWG HTML, "9.2 Server-sent events". One thread.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace infer {

class SseParser {
 public:
  explicit SseParser(size_t max_event_bytes = size_t{1} << 20) : max_event_bytes_(max_event_bytes) {}

  // Calls `event` with the data of every event that these bytes complete: its data lines, joined by line feeds. Throws
  // Error(kInvalidArgument) if a line or an event exceeds the limit.
  void feed(std::string_view bytes, const std::function<void(std::string_view data)>& event);
  // Whether the stream may end here: no event is incomplete.
  bool between_events() const { return line_.empty() && !has_data_; }

 private:
  void end_line(const std::function<void(std::string_view data)>& event);

  const size_t max_event_bytes_;
  std::string line_, data_;
  bool has_data_ = false;
  bool after_return_ = false;  // a line feed that follows belongs to the previous line end
  bool first_line_ = true;
};

}  // namespace infer
