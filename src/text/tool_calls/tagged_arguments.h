// Arguments as text between tags, such as <parameter=city>Rome</parameter>. Strings are passed on as they arrive; other
// values as JSON when they are complete.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/tool_calls/arguments_reader.h"
#include "src/text/tool_calls/tool_call_format.h"
#include "src/text/tool_calls/tool_set.h"

namespace infer {

class TaggedArguments : public ArgumentsReader {
 public:
  // `end`: the text that ends the call; it is not consumed. The format and the tools must outlive this.
  TaggedArguments(const ArgumentTags& tags, std::string_view end, const ToolSet& tools, std::string tool)
      : tags_(tags), after_value_{tags.begin_word, std::string(end)}, tools_(tools), tool_(std::move(tool)) {}

  size_t read(std::string_view text, std::string& out) override;
  void finish(std::string_view rest, std::string& out) override;

 private:
  enum class State { kStart, kBetween, kKey, kValue };
  // Each returns the number of bytes consumed; 0: more text is needed, unless the state changed.
  size_t between(std::string_view text, std::string& out);
  size_t key(std::string_view text, std::string& out);
  size_t value(std::string_view text, std::string& out);
  // The length of what precedes the actual value; nullopt if more text is needed.
  std::optional<size_t> begin_value(std::string_view text);
  // The end of a value: how many bytes of `text` certainly belong to the value, and, if it ends there, the bytes up to
  // the end of the tag.
  struct ValueEnd {
    size_t value, end;
    bool found;
  };
  ValueEnd find_end(std::string_view text) const;
  void add_value(std::string_view text, std::string& out);
  void end_value(std::string& out);

  const ArgumentTags& tags_;
  const std::vector<std::string> after_value_;
  const ToolSet& tools_;
  const std::string tool_;
  State state_ = State::kStart;
  bool first_ = true;
  bool value_begins_ = false;                    // nothing of the value has been read yet
  std::string value_end_;                        // the text that ends it
  ParameterKind kind_ = ParameterKind::kString;  // of the value being read
  std::string value_;                            // unused for a string
};

}  // namespace infer
