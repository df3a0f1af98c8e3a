// The text of --help.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

namespace infer {

// Lists each option's names as a user types them, with its text next to them, wrapped at the terminal's width; at
// $COLUMNS or 100 columns if the output is not a terminal.
std::shared_ptr<CLI::FormatterBase> help_formatter();

// The examples at the end of a command's help.
std::string help_examples(const std::vector<std::string>& examples);

// `text` in lines of at most `width` characters after the first, which begins at column `column`; the others are
// indented to `indent`. Words longer than a line stay whole.
std::string wrapped(const std::string& text, size_t column, size_t indent, size_t width);

}  // namespace infer
