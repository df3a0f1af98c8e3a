// Assembles the lines that a user types into messages. A line that ends with a backslash continues on the next; a
// line that begins with """ opens a message of several lines, closed by a line that ends with """. Does no input
// itself.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace infer {

class MessageReader {
 public:
  // Returns the message if `line` completes one.
  std::optional<std::string> add(std::string_view line);
  // Whether a message is incomplete, so that the next line belongs to it.
  bool unfinished() const { return state_ != State::kNone; }
  // Discards an incomplete message.
  void reset();

 private:
  enum class State { kNone, kBackslash, kQuoted };
  State state_ = State::kNone;
  std::vector<std::string> lines_;
};

// The text to type, as one line or one text of several lines, to enter `message`: the message itself, or the message in
// quotes if its lines would otherwise start a longer one.
std::string typed_form(const std::string& message);

}  // namespace infer
