// A template's texts as grammar expressions. Control tokens in them, such as <tool_call> in some vocabularies, become
// tokens; everything else is bytes. Used by one thread.
#pragma once

#include <string>
#include <string_view>

#include "src/text/grammar/rules.h"
#include "src/text/tokenizer.h"

namespace infer {

class MarkerText {
 public:
  // Both must outlive this.
  MarkerText(grammar::Rules& rules, const Tokenizer& tokenizer) : rules_(rules), tokenizer_(tokenizer) {}

  grammar::ExprId literal(std::string_view text) const;
  // Any text up to and including the first `marker`, which is not empty.
  grammar::ExprId up_to(const std::string& marker) const;
  // The part before the first token that ends generation, without trailing white space.
  std::string_view before_end(std::string_view text) const;

 private:
  bool is_control(std::string_view tag) const;

  grammar::Rules& rules_;
  const Tokenizer& tokenizer_;
};

// A few characters of white space at most.
grammar::ExprId few_spaces(grammar::Rules& rules);

}  // namespace infer
