#include "src/text/reasoning.h"

#include <algorithm>
#include <utility>

namespace infer {
namespace {

constexpr ReasoningTags kTags[] = {
    {"<think>", "</think>"},         {"<thinking>", "</thinking>"},     {"<thought>", "</thought>"},
    {"<reasoning>", "</reasoning>"}, {"<seed:think>", "</seed:think>"}, {"[THINK]", "[/THINK]"},
};
constexpr std::string_view kSpace = " \t\r\n";

std::string_view trim_start(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(kSpace), text.size()));
}
std::string_view trim_end(std::string_view text) { return text.substr(0, text.find_last_not_of(kSpace) + 1); }

// The offset from which `text` may be white space followed by the beginning of `tag`.
size_t may_be_tag_from(std::string_view text, std::string_view tag) {
  size_t from = text.size();
  for (size_t n = std::min(tag.size() - 1, text.size()); n > 0; --n) {
    if (text.ends_with(tag.substr(0, n))) {
      from = text.size() - n;
      break;
    }
  }
  return trim_end(text.substr(0, from)).size();
}

}  // namespace

std::span<const ReasoningTags> reasoning_tags() { return kTags; }

ReasoningSplitter::ReasoningSplitter(std::string_view prompt) {
  for (const ReasoningTags& tags : kTags) {
    if (!trim_end(prompt).ends_with(tags.open)) continue;
    state_ = State::kReasoning;
    tags_ = &tags;
    skip_space_ = true;
  }
}

std::vector<ReasoningSplitter::Part> ReasoningSplitter::add(std::string_view text) {
  pending_ += text;
  std::vector<Part> parts;
  const auto emit = [&](bool reasoning, std::string_view part) {
    if (skip_space_) part = trim_start(part);
    if (part.empty()) return;
    skip_space_ = false;
    parts.push_back({reasoning, std::string(part)});
  };
  if (state_ == State::kStart) {
    const std::string_view start = trim_start(pending_);
    const auto opens = [&](const ReasoningTags& tags) { return start.starts_with(tags.open); };
    const auto may_open = [&](const ReasoningTags& tags) { return tags.open.starts_with(start); };
    if (const auto* tags = std::find_if(std::begin(kTags), std::end(kTags), opens); tags != std::end(kTags)) {
      state_ = State::kReasoning;
      tags_ = tags;
      skip_space_ = true;
      pending_ = start.substr(tags->open.size());
    } else if (std::any_of(std::begin(kTags), std::end(kTags), may_open)) {
      return parts;  // even if there is only white space so far
    } else {
      state_ = State::kAnswer;
    }
  }
  if (state_ == State::kReasoning) {
    const size_t close = pending_.find(tags_->close);
    if (close == std::string::npos) {
      const size_t decided = may_be_tag_from(pending_, tags_->close);
      emit(true, std::string_view(pending_).substr(0, decided));
      pending_.erase(0, decided);
      return parts;
    }
    emit(true, trim_end(std::string_view(pending_).substr(0, close)));
    pending_.erase(0, close + tags_->close.size());
    state_ = State::kAnswer;
    skip_space_ = true;
  }
  emit(false, std::exchange(pending_, ""));
  return parts;
}

std::vector<ReasoningSplitter::Part> ReasoningSplitter::flush() {
  std::vector<Part> parts;
  const bool reasoning = state_ == State::kReasoning;
  const std::string_view rest = skip_space_ ? trim_start(pending_) : std::string_view(pending_);
  if (!rest.empty()) parts.push_back({reasoning, std::string(rest)});
  pending_.clear();
  return parts;
}

}  // namespace infer
