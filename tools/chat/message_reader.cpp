#include "tools/chat/message_reader.h"

#include "ggml-like/error.h"

namespace infer {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";

std::string join(const std::vector<std::string>& lines) {
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i) text += (i == 0 ? "" : "\n") + lines[i];
  return text;
}

}  // namespace

std::optional<std::string> MessageReader::add(std::string_view line) {
  const bool opens = state_ == State::kNone && line.starts_with(kQuotes);
  if (opens) line.remove_prefix(kQuotes.size());
  if (opens || state_ == State::kQuoted) {
    state_ = State::kQuoted;
    const bool closes = line.ends_with(kQuotes);
    if (closes) line.remove_suffix(kQuotes.size());
    // Quotes on a line of their own add no line.
    if (!line.empty() || !(opens || closes)) lines_.emplace_back(line);
    if (!closes) return std::nullopt;
  } else if (line.ends_with('\\')) {
    state_ = State::kBackslash;
    lines_.emplace_back(line.substr(0, line.size() - 1));
    return std::nullopt;
  } else {
    lines_.emplace_back(line);
  }
  std::string message = join(lines_);
  reset();
  return message;
}

void MessageReader::reset() {
  state_ = State::kNone;
  lines_.clear();
}

std::string typed_form(const std::string& message) {
  const bool is_one_line = message.find('\n') == std::string::npos;
  if (!is_one_line || MessageReader().add(message) == message) return message;
  return concat(kQuotes, message, kQuotes);
}

}  // namespace infer
