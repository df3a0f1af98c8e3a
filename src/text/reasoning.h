// Splits the stream of an answer into reasoning and the answer itself. Reasoning models write their reasoning first,
// between a pair of tags such as <think> and </think>; later tags are plain text. One object per answer.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace infer {

struct ReasoningTags {
  std::string_view open, close;
};
// The supported pairs: <think>, <thinking>, <thought>, <reasoning>, <seed:think>, [THINK] and their closing tags, and
// those of Cohere's, Gemma's and Apertus' templates.
std::span<const ReasoningTags> reasoning_tags();

class ReasoningSplitter {
 public:
  struct Part {
    bool reasoning;
    std::string text;  // never empty
    bool operator==(const Part&) const = default;
  };

  // `prompt`: the rendered prompt before the answer. Many templates end it with an opening tag; the answer then begins
  // inside the reasoning.
  // `more`: another pair of tags, in addition to the supported ones, or empty; the text must outlive this.
  explicit ReasoningSplitter(std::string_view prompt, ReasoningTags more = {});

  // Returns the parts decided so far, in order. Tags and the white space next to them belong to no part.
  std::vector<Part> add(std::string_view text);
  // Returns what was held back; the answer has ended.
  std::vector<Part> flush();

  bool inside() const { return state_ == State::kReasoning; }

 private:
  enum class State { kStart, kReasoning, kAnswer };
  bool start();
  void emit_reasoning(std::string_view text, std::vector<Part>& parts);

  State state_ = State::kStart;
  std::vector<ReasoningTags> known_;
  ReasoningTags tags_;       // for kReasoning
  std::string pending_;      // may be the beginning of a tag
  std::string space_;        // white space before pending_
  bool skip_space_ = false;  // after a tag
};

}  // namespace infer
