// Arguments as a JSON object. Broken JSON is passed on as written, up to a text that ends the call.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/text/tool_calls/arguments_reader.h"
#include "src/text/tool_calls/json_scanner.h"

namespace infer {

// Broken arguments: everything up to one of several end texts.
class BrokenArguments {
 public:
  // `ends`: if empty, the arguments end with the answer.
  explicit BrokenArguments(std::vector<std::string> ends) : ends_(std::move(ends)) {}
  // As ArgumentsReader::read; `ended`: one of the end texts follows.
  size_t read(std::string_view text, std::string& out, bool& ended) const;

 private:
  const std::vector<std::string> ends_;
};

class JsonArguments : public ArgumentsReader {
 public:
  explicit JsonArguments(std::vector<std::string> ends) : broken_(std::move(ends)) {}

  size_t read(std::string_view text, std::string& out) override;
  void finish(std::string_view rest, std::string& out) override { out += rest; }

 private:
  JsonScanner scanner_;
  BrokenArguments broken_;
  bool is_broken_ = false;
};

}  // namespace infer
