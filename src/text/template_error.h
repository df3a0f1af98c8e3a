// The error type of template parsing and rendering.
#pragma once

#include <string>

#include "ggml-like/error.h"

namespace infer {

// Any error in a template. what() is one line: `[template] line 3, for: 'int' object is not iterable`.
class TemplateError : public Error {
 public:
  enum class Kind {
    kSyntax,   // the template is malformed, or refers to something that does not exist (a filter, another file)
    kRuntime,  // the template cannot be applied to these variables
    kRaised,   // the template itself rejected the conversation with raise_exception
    kBudget,   // too much time, memory, output or nesting
  };
  // `text`: what is wrong, without the location. `line` 0: no location. Code: kInvalidFile; kBudget: kOutOfMemory.
  TemplateError(Kind kind, int line, const std::string& construct, const std::string& text);

  Kind kind() const { return kind_; }
  // The message alone. For kRaised, exactly the argument of raise_exception, which may have several lines.
  const std::string& text() const { return text_; }

 private:
  Kind kind_;
  std::string text_;
};

}  // namespace infer
