#include "tools/chat/answer_printer.h"

#include <unistd.h>

#include <cstdio>

#include "tools/terminal.h"

namespace infer {

void AnswerPrinter::add(bool reasoning, std::string_view text) {
  if (reasoning && !show_reasoning_) {
    if (!hint_ && shown_ == Shown::kNothing && stdout_is_terminal()) {
      hint_ = true;
      write_text("thinking ...", Style::kDim);
    }
    return;
  }
  if (reasoning) {
    // Without colours, tags mark the reasoning.
    if (shown_ == Shown::kNothing && style_on_stdout(Style::kDim).empty()) write_text("<think>\n");
    shown_ = Shown::kReasoning;
    write_text(text, Style::kDim);
    return;
  }
  if (shown_ != Shown::kAnswer) end_reasoning();
  shown_ = Shown::kAnswer;
  at_line_start_ = text.ends_with('\n');
  write_text(text);
}

void AnswerPrinter::end_reasoning() {
  if (hint_) {
    // Moves to the start of the line and clears it.
    std::fputs("\r\033[K", stdout);
    hint_ = false;
  }
  if (shown_ == Shown::kReasoning) write_text(style_on_stdout(Style::kDim).empty() ? "\n</think>\n\n" : "\n\n");
}

void AnswerPrinter::end() {
  if (shown_ != Shown::kAnswer) end_reasoning();
  if (!at_line_start_) write_text("\n");
}

}  // namespace infer
