#include "src/text/tool_calls/bare_arguments.h"

#include <algorithm>

#include "src/text/ordered_json.h"
#include "src/text/tool_calls/call_pattern.h"
#include "src/text/tool_calls/loose_json.h"

namespace infer {
namespace {

constexpr size_t kMaxArgumentDepth = 500;

}  // namespace

size_t BareArguments::read(std::string_view text, std::string& out) {
  size_t at = 0;
  while (at < text.size() && !done_) {
    const size_t n = step(text.substr(at), out);
    if (n == 0) break;
    at += n;
  }
  return at;
}

size_t BareArguments::step(std::string_view text, std::string& out) {
  if (in_string_) return string(text, out);
  if (text.starts_with(quote_)) {
    end_word(out);
    out += '"';
    in_string_ = true;
    return quote_.size();
  }
  if (std::string_view(quote_).starts_with(text)) return 0;
  const char c = text.front();
  if (std::string_view("{}[],:").find(c) == std::string_view::npos) word_ += c;
  else punctuation(c, out);
  return 1;
}

size_t BareArguments::string(std::string_view text, std::string& out) {
  if (text.starts_with(quote_)) {
    out += '"';
    in_string_ = false;
    return quote_.size();
  }
  if (std::string_view(quote_).starts_with(text)) return 0;
  const size_t n = std::min(text.find(quote_.front(), 1), text.size());
  out += json_escaped(text.substr(0, n));
  return n;
}

void BareArguments::punctuation(char c, std::string& out) {
  if (c == ':' && !open_.empty() && open_.back() == '{') {
    const std::string_view key = trimmed(word_);
    if (!key.empty())
      out += key.starts_with('"') && nlohmann::ordered_json::accept(key) ? std::string(key) : json_string(key);
    word_.clear();
    out += ": ";
    return;
  }
  if (c == ':') {
    word_ += c;
    return;
  }
  end_word(out);
  out += c;
  if (c == ',') out += ' ';
  if (c == '{' || c == '[') open_.push_back(c);
  if ((c == '}' || c == ']') && !open_.empty()) open_.pop_back();
  done_ = open_.empty() || open_.size() > kMaxArgumentDepth;
}

void BareArguments::end_word(std::string& out) {
  const std::string_view word = trimmed(word_);
  if (!word.empty()) out += json_of_text(word, ParameterKind::kMixed);
  word_.clear();
}

void BareArguments::finish(std::string_view, std::string& out) {
  if (in_string_) out += '"';
  end_word(out);
  for (; !open_.empty(); open_.pop_back()) out += open_.back() == '{' ? '}' : ']';
}

}  // namespace infer
