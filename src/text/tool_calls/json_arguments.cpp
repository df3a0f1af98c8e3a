#include "src/text/tool_calls/json_arguments.h"

#include <algorithm>

#include "src/text/tool_calls/call_pattern.h"

namespace infer {

size_t BrokenArguments::read(std::string_view text, std::string& out, bool& ended) const {
  size_t at = 0;
  for (; at < text.size(); ++at) {
    const CallPattern::Found found = match_any(text.substr(at), ends_).found;
    ended = found == CallPattern::Found::kYes;
    if (found != CallPattern::Found::kNone) break;
  }
  out += text.substr(0, at);
  return at;
}

size_t JsonArguments::read(std::string_view text, std::string& out) {
  size_t at = 0;
  while (at < text.size() && !is_broken_ && !done_) {
    const auto status = scanner_.add(text[at]);
    is_broken_ = status == JsonScanner::Status::kBroken;
    done_ = status == JsonScanner::Status::kDone;
    at += !is_broken_;
  }
  out += text.substr(0, at);
  if (is_broken_) at += broken_.read(text.substr(at), out, done_);
  return at;
}

}  // namespace infer
