// Shows an answer as it arrives: its text, and its reasoning dimmed or hidden. One object per answer.
#pragma once

#include <string_view>

namespace infer {

class AnswerPrinter {
 public:
  explicit AnswerPrinter(bool show_reasoning) : show_reasoning_(show_reasoning) {}

  void add(bool reasoning, std::string_view text);
  // Ends the answer, and its line unless the text already did. An answer without text leaves no line.
  void end();

 private:
  enum class Shown { kNothing, kReasoning, kAnswer };
  void end_reasoning();

  const bool show_reasoning_;
  Shown shown_ = Shown::kNothing;
  bool hint_ = false;  // "thinking ..." is on the screen
  bool at_line_start_ = true;
};

}  // namespace infer
