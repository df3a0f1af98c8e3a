// The error of everything that parses and renders templates.
#pragma once

#include <string>

#include "ggml-like/error.h"

namespace infer {

// Whatever goes wrong with a template. what() is one line, `[template] line 3, for: 'int' object is not iterable`.
class TemplateError : public Error {
 public:
  enum class Kind {
    kSyntax,   // the template is not well-formed or uses what does not exist (a filter, another file)
    kRuntime,  // the template cannot be applied to these values
    kRaised,   // the template itself refused the conversation with raise_exception
    kBudget,   // too much time, memory, output or nesting
  };
  // `text`: what is wrong, without place. `line` 0: no place. Code: kInvalidFile, for kBudget kOutOfMemory.
  TemplateError(Kind kind, int line, const std::string& construct, const std::string& text);

  Kind kind() const { return kind_; }
  // The message alone; of kRaised exactly what the template gave to raise_exception, perhaps several lines.
  const std::string& text() const { return text_; }

 private:
  Kind kind_;
  std::string text_;
};

}  // namespace infer
