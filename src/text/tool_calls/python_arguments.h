// Arguments as in a Python call: city='Rome', days=5). A value is passed on as JSON when it is complete. An unescaped
// quote within a string ends it only if another argument or the end of the call follows.
#pragma once

#include <string>
#include <string_view>

#include "src/text/tool_calls/arguments_reader.h"

namespace infer {

class PythonArguments : public ArgumentsReader {
 public:
  size_t read(std::string_view text, std::string& out) override;
  void finish(std::string_view rest, std::string& out) override;

 private:
  enum class State { kStart, kKey, kValue };
  // Reads one byte or one token; returns its length, or 0 if more text is needed.
  size_t key(std::string_view text, std::string& out);
  size_t value(std::string_view text, std::string& out);
  void end_value(std::string& out);

  State state_ = State::kStart;
  std::string word_;  // the key or the value so far
  bool first_ = true;
  char quote_ = '\0';  // of the string being read
  size_t depth_ = 0;   // open brackets within the value
};

}  // namespace infer
