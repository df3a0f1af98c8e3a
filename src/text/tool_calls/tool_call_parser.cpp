#include "src/text/tool_calls/tool_call_parser.h"

#include <algorithm>
#include <utility>

#include "src/text/tool_calls/bare_arguments.h"
#include "src/text/tool_calls/call_ids.h"
#include "src/text/tool_calls/json_arguments.h"
#include "src/text/tool_calls/python_arguments.h"
#include "src/text/tool_calls/tagged_arguments.h"

namespace infer {
namespace {

using Found = CallPattern::Found;
using Kind = ToolCallFormat::Kind;

// The text after a rejected marker is searched again only if it is short, so that time stays linear.
constexpr size_t kMaxSecondLook = 256;

// functions.get_weather:0 names get_weather.
std::string name_in_id(std::string_view id) {
  constexpr std::string_view kPrefix = "functions.";
  if (id.starts_with(kPrefix)) id.remove_prefix(kPrefix.size());
  const size_t colon = id.rfind(':');
  if (colon != std::string_view::npos && id.find_first_not_of("0123456789", colon + 1) == std::string_view::npos) {
    id = id.substr(0, colon);
  }
  return std::string(id);
}

}  // namespace

ToolCallParser::ToolCallParser(const ToolCallFormat& format, const ToolSet& tools, std::string id_seed,
                               std::string_view prompt)
    : format_(format), tools_(tools), id_seed_(std::move(id_seed)), calls_(format.writes_calls() && !tools.empty()) {
  if (calls_ && !format.primed.empty() && prompt.ends_with(format.primed)) {
    buffer_ = format.primed;
    unshown_ = buffer_.size();
  }
}

void ToolCallParser::add(std::string_view text, std::vector<MessageDelta>& deltas) {
  if (!calls_ && format_.ignored.empty()) return append_text(MessageDelta::Kind::kContent, text, deltas);
  buffer_ += text;
  for (bool more = true; more;) {
    switch (state_) {
      case State::kContent:
        more = content(deltas);
        break;
      case State::kObject:
        more = object(deltas);
        break;
      case State::kArguments:
        more = arguments(deltas);
        break;
      case State::kAfterCall:
        more = after_call(deltas);
        break;
    }
  }
  buffer_.erase(0, std::exchange(at_, 0));
}

void ToolCallParser::emit_content(std::string_view text, Deltas& deltas) {
  const size_t hidden = std::min(unshown_, text.size());
  unshown_ -= hidden;
  text.remove_prefix(hidden);
  if (skip_space_) text = trimmed_start(text);
  if (text.empty()) return;
  skip_space_ = false;
  size_t end = text.size();
  while (end > 0 && is_call_space(text[end - 1])) --end;
  if (end > 0) {
    shown_ = true;
    append_text(MessageDelta::Kind::kContent, std::exchange(space_, ""), deltas);
    append_text(MessageDelta::Kind::kContent, text.substr(0, end), deltas);
  }
  space_ += text.substr(end);
}

CallPattern::Match ToolCallParser::match(const CallPattern& pattern, size_t from) const {
  CallPattern::Match match = pattern.match(rest().substr(from));
  const bool unknown = format_.known_names_only && !match.name.empty() && !tools_.contains(match.name);
  if (match.found == Found::kYes && unknown) match.found = Found::kNone;
  return match;
}

bool ToolCallParser::may_begin(size_t from) const {
  if (!calls_) return false;
  const char first = format_.first.first();
  if (first != '\0') return rest()[from] == first;
  // Without a marker, a call can only be at the beginning of the answer or follow another call.
  return !shown_ && !is_call_space(rest()[from]);
}

bool ToolCallParser::content(Deltas& deltas) {
  const std::string_view text = rest();
  for (size_t i = 0; i < text.size(); ++i) {
    const CallPattern::Match ignored = match_any(text.substr(i), format_.ignored);
    const CallPattern::Match call = may_begin(i) ? match(format_.first, i) : CallPattern::Match();
    if (call.found == Found::kYes || ignored.found == Found::kYes) {
      emit_content(text.substr(0, i), deltas);
      at_ += i;
      if (call.found == Found::kYes) {
        begin_call(call, 0, deltas);
        return true;
      }
      at_ += ignored.length;
      unshown_ -= std::min(unshown_, ignored.length);
      skip_space_ = !shown_;
      return true;
    }
    if (call.found == Found::kPartly || ignored.found == Found::kPartly) {
      emit_content(text.substr(0, i), deltas);
      at_ += i;
      return false;
    }
    if (format_.first.first() == '\0' && !is_call_space(text[i])) shown_ = true;
  }
  emit_content(text, deltas);
  at_ = buffer_.size();
  return false;
}

void ToolCallParser::begin_call(const CallPattern::Match& match, size_t from, Deltas& deltas) {
  if (format_.kind == Kind::kObject) {
    auto object = std::make_unique<CallObject>(format_.keys, format_.stops);
    object_ = object.get();
    reader_ = std::move(object);
    marker_ = object_at_ = from + match.length;
    state_ = State::kObject;
    return;
  }
  std::string name(match.name), id(match.id);
  if (name.empty()) name = name_in_id(id);
  at_ += from + match.length;
  reader_ = make_reader(name);
  announce(std::move(name), std::move(id), deltas);
}

std::unique_ptr<ArgumentsReader> ToolCallParser::make_reader(const std::string& name) const {
  if (format_.kind == Kind::kBare) return std::make_unique<BareArguments>(format_.quote);
  if (format_.kind == Kind::kPython) return std::make_unique<PythonArguments>();
  if (format_.kind == Kind::kTagged) {
    return std::make_unique<TaggedArguments>(format_.tags, format_.ends.front(), tools_, name);
  }
  return std::make_unique<JsonArguments>(format_.stops);
}

void ToolCallParser::announce(std::string name, std::string id, Deltas& deltas) {
  if (id.empty()) id = make_call_id(id_seed_, n_calls_, format_.short_ids);
  space_.clear();
  shown_ = true;
  unshown_ = 0;
  ends_read_ = 0;
  deltas.push_back({MessageDelta::Kind::kToolCall, "", n_calls_++, std::move(id), std::move(name)});
  state_ = State::kArguments;
}

// The marker and the object stay in the buffer until it is clear whether they are a call.
bool ToolCallParser::object(Deltas& deltas) {
  std::string arguments;
  object_at_ += object_->read(rest().substr(object_at_), arguments);
  if (object_->is_other() || (object_->is_call() && format_.known_names_only && !tools_.contains(object_->name()))) {
    reject_object(deltas);
    return true;
  }
  if (!object_->is_call()) return false;
  at_ += object_at_;
  announce(object_->name(), object_->id(), deltas);
  append_arguments(n_calls_ - 1, arguments, deltas);
  object_ = nullptr;
  if (reader_->done()) state_ = State::kAfterCall;
  return true;
}

void ToolCallParser::reject_object(Deltas& deltas) {
  const size_t n = object_at_ - marker_ > kMaxSecondLook ? object_at_ : std::max<size_t>(marker_, 1);
  emit_content(rest().substr(0, n), deltas);
  shown_ = true;
  at_ += n;
  reader_.reset();
  object_ = nullptr;
  state_ = State::kContent;
}

bool ToolCallParser::arguments(Deltas& deltas) {
  std::string text;
  at_ += reader_->read(rest(), text);
  append_arguments(n_calls_ - 1, text, deltas);
  if (!reader_->done()) return false;
  state_ = State::kAfterCall;
  return true;
}

// Skips one of the texts that end a call, in their order. False if there is none.
bool ToolCallParser::skip_end() {
  for (size_t i = ends_read_; i < format_.ends.size(); ++i) {
    if (!rest().starts_with(format_.ends[i])) continue;
    at_ += format_.ends[i].size();
    ends_read_ = i + 1;
    return true;
  }
  return false;
}

bool ToolCallParser::after_call(Deltas& deltas) {
  at_ += rest().size() - trimmed_start(rest()).size();
  if (rest().empty()) return false;
  if (skip_end()) return true;
  const std::vector<std::string> ends(format_.ends.begin() + static_cast<std::ptrdiff_t>(ends_read_),
                                      format_.ends.end());
  bool partly = match_any(rest(), ends).found == Found::kPartly;
  for (const CallPattern* pattern : {&format_.next, &format_.first}) {
    const CallPattern::Match call = match(*pattern, 0);
    if (call.found == Found::kYes) {
      begin_call(call, 0, deltas);
      return true;
    }
    partly = partly || call.found == Found::kPartly;
  }
  if (partly) return false;
  skip_space_ = true;
  state_ = State::kContent;
  return true;
}

void ToolCallParser::finish(bool cut_off, std::vector<MessageDelta>& deltas) {
  if (cut_off) return;
  if (state_ == State::kArguments) {
    std::string text;
    reader_->finish(rest(), text);
    append_arguments(n_calls_ - 1, text, deltas);
    return;
  }
  if (state_ == State::kAfterCall) {
    const bool end = std::any_of(format_.ends.begin(), format_.ends.end(),
                                 [&](std::string_view text) { return text.starts_with(rest()); });
    if (end) return;
    skip_space_ = true;
  }
  emit_content(rest(), deltas);
  append_text(MessageDelta::Kind::kContent, space_, deltas);
}

}  // namespace infer
