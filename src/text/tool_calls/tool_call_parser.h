// Separates the tool calls of an answer from its content as the text arrives. Text that may still begin a call is held
// back, as is white space before it; what was handed out is never taken back. Time and memory are linear in the text,
// whatever it contains. One object per answer; one thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/tool_calls/arguments_reader.h"
#include "src/text/tool_calls/call_object.h"
#include "src/text/tool_calls/message_delta.h"
#include "src/text/tool_calls/tool_call_format.h"
#include "src/text/tool_calls/tool_set.h"

namespace infer {

class ToolCallParser {
 public:
  // The format and the tools must outlive this. `id_seed`: see make_call_id. `prompt`: the rendered prompt, which may
  // end with the beginning of a call.
  ToolCallParser(const ToolCallFormat& format, const ToolSet& tools, std::string id_seed, std::string_view prompt);

  // Adds the parts that the text decides. REQUIRES: whole UTF-8 characters.
  void add(std::string_view text, std::vector<MessageDelta>& deltas);
  // The answer has ended. `cut_off`: it reached its token limit, so text held back is dropped. Otherwise that text is
  // content, or completes the call it belongs to.
  void finish(bool cut_off, std::vector<MessageDelta>& deltas);

 private:
  using Deltas = std::vector<MessageDelta>;
  enum class State { kContent, kObject, kArguments, kAfterCall };

  // Each advances as far as it can; false if more text is needed.
  bool content(Deltas& deltas);
  bool object(Deltas& deltas);
  bool arguments(Deltas& deltas);
  bool after_call(Deltas& deltas);
  bool skip_end();

  std::string_view rest() const { return std::string_view(buffer_).substr(at_); }
  // Matches at offset `from` of rest(). If the format requires it, a name that the request does not offer is no match.
  CallPattern::Match match(const CallPattern& pattern, size_t from) const;
  // Whether a call may begin at offset `from` of rest().
  bool may_begin(size_t from) const;
  void begin_call(const CallPattern::Match& match, size_t from, Deltas& deltas);
  void announce(std::string name, std::string id, Deltas& deltas);
  std::unique_ptr<ArgumentsReader> make_reader(const std::string& name) const;
  void reject_object(Deltas& deltas);
  void emit_content(std::string_view text, Deltas& deltas);

  const ToolCallFormat& format_;
  const ToolSet& tools_;
  const std::string id_seed_;
  const bool calls_;  // the template writes calls and the request offers tools

  State state_ = State::kContent;
  std::string buffer_;  // undecided text, from at_ on
  size_t at_ = 0;
  size_t unshown_ = 0;       // bytes of rest() that came from the prompt
  std::string space_;        // white space after the content so far
  bool shown_ = false;       // there has been content or a call
  bool skip_space_ = false;  // skip white space before the next content

  std::unique_ptr<ArgumentsReader> reader_;
  CallObject* object_ = nullptr;  // reader_, while it may still turn out not to be a call
  size_t object_at_ = 0;          // offset in rest() of its first unread byte
  size_t marker_ = 0;             // bytes of rest() before the object
  size_t n_calls_ = 0;
  size_t ends_read_ = 0;  // number of format_.ends already read after the last call
};

}  // namespace infer
