#include "src/text/tool_calls/call_pattern.h"

#include <algorithm>
#include <utility>

#include "src/text/tool_calls/template_tokens.h"

namespace infer {
namespace {

constexpr size_t kMaxCallName = 256, kMaxSpace = 64;
constexpr std::string_view kNotInNames = "<>\"'`{}[]()=,;|";

bool is_name_char(char c) {
  return static_cast<unsigned char>(c) > ' ' && c != '\x7f' && kNotInNames.find(c) == std::string_view::npos;
}

// The name at the start; "" if there is none or it is too long.
std::string_view leading_name(std::string_view text) {
  size_t n = 0;
  while (n < text.size() && n <= kMaxCallName && is_name_char(text[n])) ++n;
  return n > kMaxCallName ? std::string_view() : text.substr(0, n);
}

}  // namespace

bool is_call_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

std::string_view trimmed_start(std::string_view text) {
  while (!text.empty() && is_call_space(text.front())) text.remove_prefix(1);
  return text;
}

std::string_view trimmed_end(std::string_view text) {
  while (!text.empty() && is_call_space(text.back())) text.remove_suffix(1);
  return text;
}

std::string_view trimmed(std::string_view text) { return trimmed_end(trimmed_start(text)); }

size_t leading_space(std::string_view text) {
  size_t n = 0;
  while (n < text.size() && n < kMaxSpace && is_call_space(text[n])) ++n;
  return n;
}

CallPattern::Match match_any(std::string_view text, const std::vector<std::string>& words) {
  CallPattern::Match match;
  for (const std::string& word : words) {
    if (text.starts_with(word)) return {CallPattern::Found::kYes, word.size(), {}, {}};
    if (std::string_view(word).starts_with(text)) match.found = CallPattern::Found::kPartly;
  }
  return match;
}

CallPattern::CallPattern(std::string_view text, std::vector<std::string> then) : then_(std::move(then)) {
  using Kind = Element::Kind;
  for (const char c : trimmed(text)) {
    const Kind kind = is_call_space(c)  ? Kind::kSpace
                      : c == kIdPlace   ? Kind::kId
                      : c == kNamePlace ? Kind::kName
                                        : Kind::kText;
    if (elements_.empty() || elements_.back().kind != kind) elements_.push_back({kind, ""});
    if (kind == Kind::kText) elements_.back().text += c;
  }
}

char CallPattern::first() const {
  return elements_.empty() || elements_[0].kind != Element::Kind::kText ? '\0' : elements_[0].text[0];
}

bool CallPattern::has_tag() const {
  return std::any_of(elements_.begin(), elements_.end(), [](const Element& e) { return contains_tag(e.text); });
}

CallPattern::Match CallPattern::match(std::string_view text) const {
  using Kind = Element::Kind;
  Match match;
  size_t at = 0;
  for (const Element& element : elements_) {
    const std::string_view rest = text.substr(at);
    if (element.kind == Kind::kText) {
      if (!rest.starts_with(element.text)) {
        if (std::string_view(element.text).starts_with(rest)) match.found = Found::kPartly;
        return match;
      }
      at += element.text.size();
    } else if (element.kind == Kind::kSpace) {
      at += leading_space(rest);
    } else {
      const std::string_view word = leading_name(rest);
      if (word.empty() && !rest.empty()) return match;
      if (word.size() == rest.size()) return match.found = Found::kPartly, match;
      (element.kind == Kind::kId ? match.id : match.name) = word;
      at += word.size();
    }
  }
  if (!then_.empty()) {
    at += leading_space(text.substr(at));
    match.found = match_any(text.substr(at), then_).found;
    if (match.found != Found::kYes) return match;
  }
  match.found = Found::kYes;
  match.length = at;
  return match;
}

}  // namespace infer
