// What stands before a tool call: texts of the template, with places for white space, the call's id and its name.
// Matching never looks further than a bounded number of bytes. Immutable.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace infer {

inline constexpr char kIdPlace = '\x01', kNamePlace = '\x02';

// White space, and the end of a text.
bool is_call_space(char c);
std::string_view trimmed(std::string_view text);
std::string_view trimmed_start(std::string_view text);
std::string_view trimmed_end(std::string_view text);

class CallPattern {
 public:
  enum class Found { kNone, kPartly, kYes };  // kPartly: more text decides
  struct Match {
    Found found = Found::kNone;
    size_t length = 0;
    std::string_view id, name;
  };

  CallPattern() = default;
  // `text`: kIdPlace and kNamePlace stand for an id and a name; white space in it matches any, also none. `then`: one
  // of these has to follow; it is no part of the match, but white space before it is. Empty: anything may follow.
  CallPattern(std::string_view text, std::vector<std::string> then);

  Match match(std::string_view text) const;
  // The byte every match begins with; 0: it may begin with a name, an id or what `then` says.
  char first() const;
  // Nothing but what has to follow.
  bool empty() const { return elements_.empty(); }
  // A text with a tag such as <tool_call> or [TOOL_CALLS], which no one writes by chance.
  bool has_tag() const;

 private:
  struct Element {
    enum class Kind { kText, kSpace, kId, kName } kind;
    std::string text;
  };
  std::vector<Element> elements_;
  std::vector<std::string> then_;
};

// Whether `text` begins with one of `words`, or may once it goes on.
CallPattern::Match match_any(std::string_view text, const std::vector<std::string>& words);

// The bytes of white space at the start, at most a fixed number.
size_t leading_space(std::string_view text);

}  // namespace infer
