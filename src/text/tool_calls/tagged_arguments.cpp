#include "src/text/tool_calls/tagged_arguments.h"

#include <algorithm>

#include "src/text/tool_calls/loose_json.h"

namespace infer {
namespace {

constexpr size_t kMaxKey = 256;
constexpr std::string_view kCdata = "<![CDATA[";
using Found = CallPattern::Found;

}  // namespace

size_t TaggedArguments::read(std::string_view text, std::string& out) {
  if (state_ == State::kStart) {
    out += '{';
    state_ = State::kBetween;
  }
  for (size_t at = 0;;) {
    const State before = state_;
    const std::string_view rest = text.substr(at);
    const size_t n = state_ == State::kBetween ? between(rest, out)
                     : state_ == State::kKey   ? key(rest, out)
                                               : value(rest, out);
    at += n;
    if (done_ || (n == 0 && state_ == before) || at == text.size()) return at;
  }
}

// Skips text that is neither an argument nor the end.
size_t TaggedArguments::between(std::string_view text, std::string& out) {
  if (text.empty()) return 0;
  size_t at = 0;
  CallPattern::Match match;
  for (; at < text.size(); ++at) {
    match = match_any(text.substr(at), after_value_);
    if (match.found != Found::kNone) break;
  }
  if (match.found != Found::kYes) return at;
  if (text.substr(at).starts_with(tags_.begin_word)) {
    state_ = State::kKey;
    return at + tags_.begin_word.size();
  }
  out += '}';
  done_ = true;
  return at;
}

size_t TaggedArguments::key(std::string_view text, std::string& out) {
  const size_t before = text.find_first_not_of(" \t\r\n");
  if (before == std::string_view::npos) return text.size();
  for (size_t end = before; end < text.size() && end < before + kMaxKey; ++end) {
    const auto as_string = tags_.string_value.match(text.substr(end)), as_other = tags_.value.match(text.substr(end));
    if (as_string.found == Found::kPartly || as_other.found == Found::kPartly) return 0;
    const auto& match = as_string.found == Found::kYes ? as_string : as_other;
    if (match.found == Found::kNone) continue;
    const std::string_view name = trimmed(text.substr(before, end - before));
    out += (first_ ? "" : ", ") + json_string(name) + ": ";
    first_ = false;
    kind_ = !tags_.typed                     ? tools_.parameter(tool_, name)
            : as_string.found == Found::kYes ? ParameterKind::kString
                                             : ParameterKind::kJson;
    if (kind_ == ParameterKind::kString) out += '"';
    value_begins_ = true;
    state_ = State::kValue;
    return end + match.length;
  }
  if (text.size() < before + kMaxKey) return 0;
  state_ = State::kBetween;
  return before + 1;
}

std::optional<size_t> TaggedArguments::begin_value(std::string_view text) {
  value_end_ = tags_.end;
  if (tags_.line_break) return text.starts_with('\n') ? 1 : 0;
  if (!tags_.cdata) return 0;
  if (text.starts_with(kCdata)) {
    value_end_ = "]]>" + tags_.end;
    return kCdata.size();
  }
  if (kCdata.starts_with(text)) return std::nullopt;
  return 0;
}

size_t TaggedArguments::value(std::string_view text, std::string& out) {
  if (text.empty()) return 0;
  if (value_begins_) {
    const auto begin = begin_value(text);
    if (begin) value_begins_ = false;
    if (begin != 0) return begin.value_or(0);
  }
  const ValueEnd end = find_end(text);
  add_value(text.substr(0, end.value), out);
  if (!end.found) return end.value;
  end_value(out);
  return end.end;
}

// A closing tag ends the value only if another argument or the call's end follows, since values may contain such tags.
TaggedArguments::ValueEnd TaggedArguments::find_end(std::string_view text) const {
  for (size_t at = 0;; ++at) {
    at = std::min(text.find(value_end_.front(), at), text.size());
    const std::string_view rest = text.substr(at);
    const bool tag = rest.starts_with(value_end_), begun = value_end_.starts_with(rest);
    if (!tag && !begun) continue;
    const size_t value = at - (tags_.line_break && at > 0 && text[at - 1] == '\n');
    if (begun && !tag) return {value, value, false};
    const std::string_view after = rest.substr(value_end_.size());
    const Found found = match_any(after.substr(leading_space(after)), after_value_).found;
    if (found == Found::kYes) return {value, at + value_end_.size(), true};
    if (found == Found::kPartly) return {value, value, false};
  }
}

void TaggedArguments::add_value(std::string_view text, std::string& out) {
  if (kind_ == ParameterKind::kString) out += json_escaped(text);
  else value_ += text;
}

void TaggedArguments::end_value(std::string& out) {
  if (kind_ == ParameterKind::kString) out += '"';
  else out += json_of_text(value_, kind_);
  value_.clear();
  state_ = State::kBetween;
}

void TaggedArguments::finish(std::string_view rest, std::string& out) {
  if (state_ == State::kValue) {
    if (value_begins_) value_end_ = tags_.end;
    const size_t tag = rest.find(value_end_);
    add_value(rest.substr(0, tag), out);
    end_value(out);
  }
  out += '}';
}

}  // namespace infer
