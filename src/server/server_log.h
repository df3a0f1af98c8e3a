// The server's log: one line per event on standard error, as text or as JSON. Any thread.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "src/server/json_fields.h"

namespace infer {

enum class LogLevel { kError, kInfo, kDebug };

class ServerLog {
 public:
  ServerLog(LogLevel level, bool json) : level_(level), json_(json) {}

  bool wants(LogLevel level) const { return level <= level_; }
  // `event` is a word; `fields` an object of plain values. As text: `time level event name=value ...`; as JSON: one
  // object that starts with "time", "level" and "event". Untrusted text is made safe for a terminal. If memory does not
  // suffice for the line, logs a line saying so instead.
  void write(LogLevel level, std::string_view event, const Json& fields) noexcept;

 private:
  const LogLevel level_;
  const bool json_;
  std::mutex mutex_;
};

// The line that ServerLog writes, without its line end.
std::string log_line(LogLevel level, std::string_view event, const Json& fields, bool json, std::string_view time);

}  // namespace infer
