// What the program writes for people: a model's text on standard output, notes on standard error. On a terminal the
// text is kept from steering it; colours are used on a terminal only, and not where NO_COLOR is set or TERM is "dumb".
// One thread.
#pragma once

#include <string>
#include <string_view>

namespace infer {

enum class Style { kPlain, kDim, kBold, kPrompt };

bool stdout_is_terminal();
bool stdin_is_terminal();

// Control characters other than line feed and tab are left out (C0, DEL and, in UTF-8, C1).
std::string without_controls(std::string_view text);

// A model's text to standard output, at once. Throws Error(kIo) when it cannot be written.
void write_text(std::string_view text, Style style = Style::kPlain);
// A line to standard error.
void write_note(std::string_view line, Style style = Style::kDim);

// The escape sequence that begins a style on standard output (or error); "" where no colours are used.
std::string_view style_on_stdout(Style style);
std::string_view style_on_stderr(Style style);
// Ends any style there.
std::string_view style_end_on_stdout();
std::string_view style_end_on_stderr();

}  // namespace infer
