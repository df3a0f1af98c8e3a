// Output to the user: a model's text on standard output, notes on standard error. On a terminal, control characters
// are removed from the text; colours are used only on a terminal, and not if NO_COLOR is set or TERM is "dumb". One
// thread.
#pragma once

#include <string>
#include <string_view>

namespace infer {

enum class Style { kPlain, kDim, kBold, kPrompt };

bool stdout_is_terminal();
bool stdin_is_terminal();

// Removes control characters other than line feed and tab (C0, DEL and, in UTF-8, C1).
std::string without_controls(std::string_view text);

// Writes a model's text to standard output immediately. Throws Error(kIo) if that fails.
void write_text(std::string_view text, Style style = Style::kPlain);
// Writes a line to standard error.
void write_note(std::string_view line, Style style = Style::kDim);

// Clears the screen of the terminal that standard error writes to, if it is one.
void clear_screen();

// The escape sequence that starts a style on standard output or error; "" if colours are off.
std::string_view style_on_stdout(Style style);
std::string_view style_on_stderr(Style style);
// The escape sequence that ends any style.
std::string_view style_end_on_stdout();
std::string_view style_end_on_stderr();

}  // namespace infer
