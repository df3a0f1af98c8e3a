// Parses answers in gpt-oss's format: a series of messages, each with a header. The channel in the header gives the
// kind of message, and a recipient makes it a tool call:
//
//   <|channel|>analysis<|message|>...<|end|><|start|>assistant<|channel|>commentary
//   to=functions.f<|message|>{...}<|call|>
//
// The prompt ends with <|start|>assistant. An answer without such a header is content. One object per answer.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/tool_calls/json_arguments.h"
#include "src/text/tool_calls/message_delta.h"
#include "src/text/tool_calls/tool_set.h"

namespace infer {

// The format's control tokens.
const std::vector<std::string>& harmony_markers();

class HarmonyParser {
 public:
  // The tools must outlive this.
  HarmonyParser(const ToolSet& tools, std::string id_seed) : tools_(tools), id_seed_(std::move(id_seed)) {}

  // As in ToolCallParser.
  void add(std::string_view text, std::vector<MessageDelta>& deltas);
  void finish(bool cut_off, std::vector<MessageDelta>& deltas);

 private:
  using Deltas = std::vector<MessageDelta>;
  enum class State { kHeader, kText, kArguments };

  bool header(Deltas& deltas);
  void begin_message(std::string_view header, Deltas& deltas);
  bool text(Deltas& deltas);
  bool arguments(Deltas& deltas);
  std::string_view rest() const { return std::string_view(buffer_).substr(at_); }

  const ToolSet& tools_;
  const std::string id_seed_;
  State state_ = State::kHeader;
  MessageDelta::Kind kind_ = MessageDelta::Kind::kContent;  // of the current message, unless it is a call
  std::string buffer_;                                      // undecided text, from at_ on
  size_t at_ = 0;
  std::unique_ptr<JsonArguments> reader_;
  size_t n_calls_ = 0;
};

}  // namespace infer
