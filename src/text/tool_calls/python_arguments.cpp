#include "src/text/tool_calls/python_arguments.h"

#include <algorithm>

#include "src/text/tool_calls/call_pattern.h"
#include "src/text/tool_calls/loose_json.h"

namespace infer {
namespace {

using Found = CallPattern::Found;

// Whether a quote followed by `text` ends an argument: another argument or the end of the call follows.
Found ends_argument(std::string_view text) {
  static const CallPattern another(std::string(", ") + kNamePlace, {"="});
  const Found next = another.match(text).found;
  const std::string_view rest = text.substr(leading_space(text));
  if (next != Found::kNone || rest.empty()) return next == Found::kNone ? Found::kPartly : next;
  if (rest.front() != ')') return Found::kNone;
  const std::string_view after = rest.substr(1 + leading_space(rest.substr(1)));
  return after.empty() ? Found::kPartly : after.front() == ',' || after.front() == ']' ? Found::kYes : Found::kNone;
}

}  // namespace

size_t PythonArguments::read(std::string_view text, std::string& out) {
  if (state_ == State::kStart) {
    out += '{';
    state_ = State::kKey;
  }
  size_t at = 0;
  while (at < text.size() && !done_) {
    const size_t n = state_ == State::kKey ? key(text.substr(at), out) : value(text.substr(at), out);
    if (n == 0) break;
    at += n;
  }
  return at;
}

size_t PythonArguments::key(std::string_view text, std::string& out) {
  const char c = text.front();
  if (c == ')') {
    out += '}';
    done_ = true;
  } else if (c == '=') {
    out += (first_ ? "" : ", ") + json_string(trimmed(word_)) + ": ";
    first_ = false;
    word_.clear();
    state_ = State::kValue;
  } else if (c != ',') {
    word_ += c;
  }
  return 1;
}

size_t PythonArguments::value(std::string_view text, std::string& out) {
  const char c = text.front();
  const bool string = !word_.empty() && word_.front() == quote_;  // the value itself is a string, not an item of a list
  if (quote_ != '\0' && c == '\\') {
    if (text.size() == 1) return 0;
    word_ += text.substr(0, 2);
    return 2;
  }
  if (quote_ != '\0') {
    const Found end = c != quote_ ? Found::kNone : string && depth_ == 0 ? ends_argument(text.substr(1)) : Found::kYes;
    if (end == Found::kPartly) return 0;
    if (end == Found::kYes) quote_ = '\0';
    word_ += c;
    return 1;
  }
  if (depth_ == 0 && (c == ',' || c == ')')) {
    end_value(out);
    state_ = State::kKey;
    return c == ',' ? 1 : key(text, out);
  }
  if (c == '\'' || c == '"') quote_ = c;
  if (c == '[' || c == '{' || c == '(') ++depth_;
  if ((c == ']' || c == '}' || c == ')') && depth_ > 0) --depth_;
  if (!word_.empty() || !is_call_space(c)) word_ += c;
  return 1;
}

void PythonArguments::end_value(std::string& out) {
  out += json_of_python(word_);
  word_.clear();
  quote_ = '\0';
  depth_ = 0;
}

void PythonArguments::finish(std::string_view rest, std::string& out) {
  if (state_ == State::kValue) {
    word_ += rest;
    end_value(out);
  }
  out += '}';
}

}  // namespace infer
