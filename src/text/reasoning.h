// Splits the stream of an answer into reasoning and answer proper. Models that think aloud write it first, between a
// pair of tags such as <think> and </think>; tags later in the text are text. One object per answer.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace infer {

struct ReasoningTags {
  std::string_view open, close;
};
// The pairs in use: <think>, <thinking>, <thought>, <reasoning>, <seed:think>, [THINK] and their ends.
std::span<const ReasoningTags> reasoning_tags();

class ReasoningSplitter {
 public:
  struct Part {
    bool reasoning;
    std::string text;  // never empty
    bool operator==(const Part&) const = default;
  };

  // `prompt`: the rendered prompt that the answer follows. Many templates end it with an opening tag; the answer then
  // begins inside.
  explicit ReasoningSplitter(std::string_view prompt);

  // The parts that are decided by now, in order. Tags belong to no part, nor does white space next to them.
  std::vector<Part> add(std::string_view text);
  // What was held back: the answer has ended.
  std::vector<Part> flush();

  bool inside() const { return state_ == State::kReasoning; }

 private:
  enum class State { kStart, kReasoning, kAnswer };

  State state_ = State::kStart;
  const ReasoningTags* tags_ = nullptr;  // of kReasoning
  std::string pending_;
  bool skip_space_ = false;  // right after a tag
};

}  // namespace infer
