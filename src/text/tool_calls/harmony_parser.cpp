#include "src/text/tool_calls/harmony_parser.h"

#include <utility>

#include "src/text/tool_calls/call_ids.h"
#include "src/text/tool_calls/call_pattern.h"

namespace infer {
namespace {

using Found = CallPattern::Found;

constexpr size_t kMaxHeader = 512;
constexpr std::string_view kMessage = "<|message|>", kChannel = "<|channel|>", kRecipient = "to=";

const std::vector<std::string>& ends() {
  static const std::vector<std::string> all = {"<|end|>", "<|call|>", "<|return|>", "<|start|>"};
  return all;
}
// What a header may begin with, after white space.
const std::vector<std::string>& header_begins() {
  static const std::vector<std::string> all = {"<|channel|>", "<|start|>", "<|message|>", "to=", "assistant"};
  return all;
}

// The word after `mark`; "" if there is none.
std::string_view word_after(std::string_view header, std::string_view mark) {
  const size_t at = header.find(mark);
  if (at == std::string_view::npos) return "";
  header.remove_prefix(at + mark.size());
  return header.substr(0, header.find_first_of(" \t\r\n<"));
}

}  // namespace

const std::vector<std::string>& harmony_markers() {
  static const std::vector<std::string> all = {"<|start|>", "<|channel|>", "<|message|>", "<|constrain|>",
                                               "<|end|>",   "<|call|>",    "<|return|>"};
  return all;
}

void HarmonyParser::add(std::string_view text, std::vector<MessageDelta>& deltas) {
  buffer_ += text;
  for (bool more = true; more;) {
    more = state_ == State::kHeader ? header(deltas) : state_ == State::kText ? this->text(deltas) : arguments(deltas);
  }
  buffer_.erase(0, std::exchange(at_, 0));
}

bool HarmonyParser::header(Deltas& deltas) {
  const std::string_view text = rest().substr(0, kMaxHeader), begin = text.substr(leading_space(text));
  if (begin.empty()) return false;
  const Found found = match_any(begin, header_begins()).found;
  const size_t end = text.find(kMessage);
  if (found == Found::kYes && end != std::string_view::npos) {
    begin_message(text.substr(0, end), deltas);
    at_ += end + kMessage.size();
    return true;
  }
  if (found != Found::kNone && text.size() < kMaxHeader) return false;
  kind_ = MessageDelta::Kind::kContent;
  state_ = State::kText;
  return true;
}

void HarmonyParser::begin_message(std::string_view header, Deltas& deltas) {
  constexpr std::string_view kFunctions = "functions.";
  std::string_view name = word_after(header, kRecipient);
  const bool function = name.starts_with(kFunctions);
  if (function) name.remove_prefix(kFunctions.size());
  kind_ = word_after(header, kChannel) == "analysis" ? MessageDelta::Kind::kReasoning : MessageDelta::Kind::kContent;
  state_ = State::kText;
  if (tools_.empty() || name.empty() || !(function || tools_.contains(name))) return;
  state_ = State::kArguments;
  reader_ = std::make_unique<JsonArguments>(ends());
  deltas.push_back(
      {MessageDelta::Kind::kToolCall, "", n_calls_, make_call_id(id_seed_, n_calls_, false), std::string(name)});
  ++n_calls_;
}

bool HarmonyParser::text(Deltas& deltas) {
  const std::string_view text = rest();
  for (size_t i = 0; i < text.size(); ++i) {
    const CallPattern::Match end = text[i] == '<' ? match_any(text.substr(i), ends()) : CallPattern::Match();
    if (end.found == Found::kNone) continue;
    append_text(kind_, text.substr(0, i), deltas);
    at_ += i;
    if (end.found == Found::kPartly) return false;
    at_ += end.length;
    state_ = State::kHeader;
    return true;
  }
  append_text(kind_, text, deltas);
  at_ = buffer_.size();
  return false;
}

bool HarmonyParser::arguments(Deltas& deltas) {
  std::string text;
  at_ += reader_->read(rest(), text);
  append_arguments(n_calls_ - 1, text, deltas);
  if (!reader_->done()) return false;
  kind_ = MessageDelta::Kind::kContent;
  state_ = State::kText;
  return true;
}

void HarmonyParser::finish(bool cut_off, std::vector<MessageDelta>& deltas) {
  if (cut_off) return;
  if (state_ != State::kArguments) return append_text(kind_, rest(), deltas);
  std::string text;
  reader_->finish(rest(), text);
  append_arguments(n_calls_ - 1, text, deltas);
}

}  // namespace infer
