// Arguments as an object with unquoted keys, and with strings enclosed in a marker instead of quotes, as Gemma 4 writes
// them: {city:<|"|>Rome<|"|>,days:5}.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/text/tool_calls/arguments_reader.h"

namespace infer {

class BareArguments : public ArgumentsReader {
 public:
  explicit BareArguments(std::string_view quote) : quote_(quote) {}

  size_t read(std::string_view text, std::string& out) override;
  void finish(std::string_view rest, std::string& out) override;

 private:
  // Reads one byte or one marker; returns its length, or 0 if more text is needed.
  size_t step(std::string_view text, std::string& out);
  size_t string(std::string_view text, std::string& out);
  void punctuation(char c, std::string& out);
  void end_word(std::string& out);

  const std::string quote_;
  std::vector<char> open_;  // brackets
  std::string word_;        // a key, a number or another word without quotes
  bool in_string_ = false;
};

}  // namespace infer
