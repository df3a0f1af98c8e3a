#include "tools/help.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "ggml-like/error.h"
#include "tools/arguments.h"
#include "tools/option_names.h"

namespace infer {
namespace {

constexpr size_t kTextColumn = 30;  // where the texts of options begin
constexpr size_t kNarrowest = 60, kWidest = 200;

size_t help_width() {
  size_t width = 100;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    width = size.ws_col;
  } else if (const char* columns = std::getenv("COLUMNS")) {
    if (const long n = std::atol(columns); n > 0) width = static_cast<size_t>(n);
  }
  return std::clamp(width, kNarrowest, kWidest);
}

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    if (positional) return CLI::Formatter::make_option_name(option, true);
    return CLI::detail::join(typed_names(*option), ",");
  }

  std::string make_option(const CLI::Option* option, bool positional) const override {
    std::string line = concat("  ", make_option_name(option, positional), make_option_opts(option));
    const std::string text = make_option_desc(option);
    if (text.empty()) return line + "\n";
    // Names that reach into the column of the texts get a line of their own.
    if (line.size() + 2 > kTextColumn) {
      line = wrapped(line, 0, 4, width_) + "\n";
      line.append(kTextColumn, ' ');
    } else {
      line.append(kTextColumn - line.size(), ' ');
    }
    return concat(line, wrapped(text, kTextColumn, kTextColumn, width_), "\n");
  }

  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, std::move(name));
    const char* words = takes_bare_prompt(*app) ? " [MODEL] [PROMPT]" : takes_bare_model(*app) ? " [MODEL]" : "";
    usage.replace(usage.find_last_not_of('\n') + 1, 0, words);
    return usage;
  }

 private:
  const size_t width_ = help_width();
};

}  // namespace

std::string wrapped(const std::string& text, size_t column, size_t indent, size_t width) {
  std::string result;
  bool at_start = true;  // of a line
  for (size_t at = 0; at < text.size();) {
    // Spaces belong to the word after them, so that the indentation of the first line stays.
    size_t end = text.find_first_not_of(' ', at);
    if (end == std::string::npos) break;
    const size_t word = end;
    end = std::min(text.find(' ', end), text.size());
    // A list that no line has room for is broken after one of its separators.
    if (const size_t room = width - indent; end - word > room) {
      const size_t separator = text.find_last_of(";,|", word + room - 1);
      if (separator != std::string::npos && separator > word) end = separator + 1;
    }
    if (!at_start && column + (end - at) > width) {
      result += "\n" + std::string(indent, ' ');
      column = indent;
      at = word;
    }
    result += text.substr(at, end - at);
    column += end - at;
    at = end;
    at_start = false;
  }
  return result;
}

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<HelpFormatter>(); }

std::string help_examples(const std::vector<std::string>& examples) {
  std::string text = "Examples:";
  for (const std::string& example : examples) text += "\n  " + example;
  return text;
}

}  // namespace infer
