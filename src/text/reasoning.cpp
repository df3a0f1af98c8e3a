#include "src/text/reasoning.h"

#include <algorithm>
#include <utility>

namespace infer {
namespace {

constexpr ReasoningTags kTags[] = {
    {"<think>", "</think>"},
    {"<thinking>", "</thinking>"},
    {"<thought>", "</thought>"},
    {"<reasoning>", "</reasoning>"},
    {"<seed:think>", "</seed:think>"},
    {"[THINK]", "[/THINK]"},
    {"<|START_THINKING|>", "<|END_THINKING|>"},
    {"<|channel>thought", "<channel|>"},
    {"<|inner_prefix|>", "<|inner_suffix|>"},
};
constexpr std::string_view kSpace = " \t\r\n";

std::string_view trim_start(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(kSpace), text.size()));
}
std::string_view trim_end(std::string_view text) { return text.substr(0, text.find_last_not_of(kSpace) + 1); }

// The offset from which `text` may be the beginning of `tag`.
size_t may_be_tag_from(std::string_view text, std::string_view tag) {
  for (size_t n = std::min(tag.size() - 1, text.size()); n > 0; --n) {
    if (text.ends_with(tag.substr(0, n))) return text.size() - n;
  }
  return text.size();
}

}  // namespace

std::span<const ReasoningTags> reasoning_tags() { return kTags; }

ReasoningSplitter::ReasoningSplitter(std::string_view prompt, ReasoningTags more)
    : known_(std::begin(kTags), std::end(kTags)) {
  if (!more.open.empty()) known_.push_back(more);
  for (const ReasoningTags& tags : known_) {
    if (!trim_end(prompt).ends_with(tags.open)) continue;
    state_ = State::kReasoning;
    tags_ = tags;
    skip_space_ = true;
  }
}

// Adds to `parts`; holds back trailing white space, which belongs to no part if a closing tag follows.
void ReasoningSplitter::emit_reasoning(std::string_view text, std::vector<Part>& parts) {
  if (skip_space_) text = trim_start(text);
  if (text.empty()) return;
  skip_space_ = false;
  const std::string_view bare = trim_end(text);
  if (!bare.empty()) parts.push_back({true, std::exchange(space_, "").append(bare)});
  space_ += text.substr(bare.size());
}

// False if more text is needed to decide whether the answer begins with reasoning.
bool ReasoningSplitter::start() {
  const std::string_view start = trim_start(pending_);
  space_ += std::string_view(pending_).substr(0, pending_.size() - start.size());
  pending_.erase(0, pending_.size() - start.size());
  const auto opens = [&](const ReasoningTags& tags) { return pending_.starts_with(tags.open); };
  const auto may_open = [&](const ReasoningTags& tags) { return tags.open.starts_with(pending_); };
  if (const auto tags = std::find_if(known_.begin(), known_.end(), opens); tags != known_.end()) {
    state_ = State::kReasoning;
    tags_ = *tags;
    skip_space_ = true;
    space_.clear();
    pending_.erase(0, tags->open.size());
    return true;
  }
  if (std::any_of(known_.begin(), known_.end(), may_open)) return false;  // also true for white space alone
  state_ = State::kAnswer;
  pending_.insert(0, std::exchange(space_, ""));
  return true;
}

std::vector<ReasoningSplitter::Part> ReasoningSplitter::add(std::string_view text) {
  pending_ += text;
  std::vector<Part> parts;
  if (state_ == State::kStart && !start()) return parts;
  if (state_ == State::kReasoning) {
    const size_t close = pending_.find(tags_.close);
    const bool closes = close != std::string::npos;
    const size_t decided = closes ? close : may_be_tag_from(pending_, tags_.close);
    emit_reasoning(std::string_view(pending_).substr(0, decided), parts);
    pending_.erase(0, decided);
    if (!closes) return parts;
    pending_.erase(0, tags_.close.size());
    state_ = State::kAnswer;
    space_.clear();
    skip_space_ = true;
  }
  const std::string_view answer = skip_space_ ? trim_start(pending_) : std::string_view(pending_);
  if (!answer.empty()) {
    skip_space_ = false;
    parts.push_back({false, std::string(answer)});
  }
  pending_.clear();
  return parts;
}

std::vector<ReasoningSplitter::Part> ReasoningSplitter::flush() {
  std::vector<Part> parts;
  std::string rest = std::exchange(space_, "") + std::exchange(pending_, "");
  if (skip_space_) rest.erase(0, rest.size() - trim_start(rest).size());
  if (!rest.empty()) parts.push_back({state_ == State::kReasoning, std::move(rest)});
  return parts;
}

}  // namespace infer
