// Puts the lines that a user types together to messages. A line that ends with a backslash goes on in the next one;
// a line that begins with """ opens a message of several lines, which ends with the line that ends with """.
// Pure bookkeeping, no input of its own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace infer {

class MessageReader {
 public:
  // The message, when `line` completes one.
  std::optional<std::string> add(std::string_view line);
  // Whether a message is begun, so that the next line belongs to it.
  bool unfinished() const { return state_ != State::kNone; }
  // Forgets what is begun.
  void reset();

 private:
  enum class State { kNone, kBackslash, kQuoted };
  State state_ = State::kNone;
  std::vector<std::string> lines_;
};

// What typed, as one line or as one text of several, is `message`: itself, or a line that would begin a longer message
// between quotes.
std::string typed_form(const std::string& message);

}  // namespace infer
