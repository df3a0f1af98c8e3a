#include "tools/terminal.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "ggml-like/error.h"

namespace infer {
namespace {

bool colours_on(int descriptor) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  if (no_color && *no_color) return false;
  return isatty(descriptor) != 0 && term && *term && std::string_view(term) != "dumb";
}

std::string_view sequence(Style style) {
  switch (style) {
    case Style::kPlain:
      return "";
    case Style::kDim:
      return "\033[2m";
    case Style::kBold:
      return "\033[1m";
    case Style::kPrompt:
      return "\033[1;32m";
  }
  return "";
}

bool stdout_colours() {
  static const bool on = colours_on(STDOUT_FILENO);
  return on;
}
bool stderr_colours() {
  static const bool on = colours_on(STDERR_FILENO);
  return on;
}

}  // namespace

bool stdout_is_terminal() {
  static const bool terminal = isatty(STDOUT_FILENO) != 0;
  return terminal;
}

bool stdin_is_terminal() {
  static const bool terminal = isatty(STDIN_FILENO) != 0;
  return terminal;
}

std::string without_controls(std::string_view text) {
  std::string safe;
  for (size_t i = 0; i < text.size(); ++i) {
    const unsigned char byte = static_cast<unsigned char>(text[i]);
    const unsigned char next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    if (byte == 0xC2 && next >= 0x80 && next < 0xA0) {
      ++i;
    } else if ((byte >= 0x20 && byte != 0x7F) || byte == '\n' || byte == '\t') {
      safe += text[i];
    }
  }
  return safe;
}

void write_text(std::string_view model_text, Style style) {
  std::string text = stdout_is_terminal() ? without_controls(model_text) : std::string(model_text);
  if (text.empty()) return;
  if (const std::string_view on = style_on_stdout(style); !on.empty()) {
    text = concat(on, text, style_end_on_stdout());
  }
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw Error(ErrorCode::kIo, "Cannot write to standard output.");
  }
}

void write_note(std::string_view line, Style style) {
  const std::string_view on = style_on_stderr(style);
  const std::string text = concat(on, without_controls(line), on.empty() ? "" : style_end_on_stderr(), "\n");
  std::fputs(text.c_str(), stderr);
}

void clear_screen() {
  if (isatty(STDERR_FILENO) != 0) std::fputs("\033[H\033[2J", stderr);
}

std::string_view style_on_stdout(Style style) { return stdout_colours() ? sequence(style) : ""; }
std::string_view style_on_stderr(Style style) { return stderr_colours() ? sequence(style) : ""; }
std::string_view style_end_on_stdout() { return stdout_colours() ? "\033[0m" : ""; }
std::string_view style_end_on_stderr() { return stderr_colours() ? "\033[0m" : ""; }

}  // namespace infer
