#include "src/text/tool_calls/template_tokens.h"

#include <algorithm>

#include "src/text/tool_calls/call_pattern.h"

namespace infer {
namespace {

constexpr size_t kMaxTag = 64;

// The length of the tag at the start, 0 if there is none. <...> ends at its bracket, before the next <, or with the
// text: a tag that continues with a name is open, not closed.
size_t tag_length(std::string_view text) {
  if (text.front() == '<') {
    const size_t end = text.substr(1, kMaxTag).find_first_of("<>\n\"");
    if (end == std::string_view::npos) return text.size() <= kMaxTag ? text.size() : 0;
    return text[end + 1] == '>' ? end + 2 : end + 1;
  }
  if (text.front() == '[') {
    const size_t end = text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_/0123456789", 1);
    if (end != std::string_view::npos && end > 2 && end < kMaxTag && text[end] == ']') return end + 1;
  }
  return 0;
}

}  // namespace

std::vector<std::string_view> template_tokens(std::string_view text) {
  std::vector<std::string_view> tokens;
  while (!text.empty()) {
    const size_t length = std::max<size_t>(tag_length(text), 1);
    tokens.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return tokens;
}

size_t common_start(std::string_view a, std::string_view b) {
  const auto of_a = template_tokens(a), of_b = template_tokens(b);
  size_t n = 0;
  for (size_t i = 0; i < std::min(of_a.size(), of_b.size()) && of_a[i] == of_b[i]; ++i) n += of_a[i].size();
  return n;
}

size_t common_end(std::string_view a, std::string_view b) {
  const auto of_a = template_tokens(a), of_b = template_tokens(b);
  size_t n = 0;
  for (size_t i = 1; i <= std::min(of_a.size(), of_b.size()) && of_a[of_a.size() - i] == of_b[of_b.size() - i]; ++i) {
    n += of_a[of_a.size() - i].size();
  }
  return n;
}

std::vector<std::string> tags_and_words(std::string_view text) {
  std::vector<std::string> parts;
  bool begun = false;  // within a word
  for (const std::string_view token : template_tokens(text)) {
    const bool single = token.size() == 1;
    if (single && is_call_space(token.front())) {
      begun = false;
    } else if (single && begun) {
      parts.back() += token;
    } else {
      parts.emplace_back(token);
      begun = single;
    }
  }
  return parts;
}

bool contains_tag(std::string_view text) {
  const auto tokens = template_tokens(text);
  return std::any_of(tokens.begin(), tokens.end(), [](std::string_view token) { return token.size() > 2; });
}

}  // namespace infer
