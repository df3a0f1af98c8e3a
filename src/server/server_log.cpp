#include "src/server/server_log.h"

#include <chrono>
#include <cstdio>
#include <ctime>

#include "ggml-like/printable.h"
#include "src/server/json_object.h"

namespace infer {
namespace {

constexpr std::string_view kLevels[] = {"error", "info", "debug"};
constexpr size_t kMaxText = 2000;  // bytes per value

std::string time_now() {
  using std::chrono::system_clock;
  const auto now = system_clock::now();
  const std::time_t seconds = system_clock::to_time_t(now);
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm utc = {};
  gmtime_r(&seconds, &utc);
  char date[32], text[48];
  std::strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text, sizeof(text), "%s.%03dZ", date, static_cast<int>(ms));
  return text;
}

}  // namespace

std::string log_line(LogLevel level, std::string_view event, const Json& fields, bool json, std::string_view time) {
  const std::string_view word = kLevels[static_cast<int>(level)];
  if (json) {
    Json line = json_object("time", time, "level", word, "event", event);
    line.update(fields);
    // ASCII only, so that nothing can disturb a terminal.
    return line.dump(-1, ' ', true, Json::error_handler_t::replace);
  }
  std::string line = std::string(time) + " " + std::string(word) + " " + std::string(event);
  for (const auto& [name, value] : fields.items()) {
    line += " " + name + "=";
    if (!value.is_string()) {
      line += value.dump();
      continue;
    }
    const std::string text = printable(value.get_ref<const std::string&>(), kMaxText);
    line += text.find(' ') == std::string::npos && !text.empty() ? text : "\"" + text + "\"";
  }
  return line;
}

void ServerLog::write(LogLevel level, std::string_view event, const Json& fields) noexcept {
  if (!wants(level)) return;
  try {
    const std::string line = log_line(level, event, fields, json_, time_now()) + "\n";
    const std::lock_guard lock(mutex_);
    std::fwrite(line.data(), 1, line.size(), stderr);
  } catch (const std::exception&) {
    constexpr std::string_view kLost = "error log_line_lost reason=\"not enough memory\"\n";
    constexpr std::string_view kLostJson =
        "{\"level\":\"error\",\"event\":\"log_line_lost\",\"reason\":\"not enough memory\"}\n";
    const std::string_view line = json_ ? kLostJson : kLost;
    std::fwrite(line.data(), 1, line.size(), stderr);
  }
}

}  // namespace infer
