// The text before a tool call: texts of the template, with placeholders for white space, the call's id and its name.
// Matching looks ahead only a bounded number of bytes. Immutable.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace infer {

inline constexpr char kIdPlace = '\x01', kNamePlace = '\x02';

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
  // `text`: kIdPlace and kNamePlace stand for an id and a name; white space matches any amount, even none. `then`: one
  // of these must follow. It is not part of the match, but white space before it is. Empty: anything may follow.
  CallPattern(std::string_view text, std::vector<std::string> then);

  Match match(std::string_view text) const;
  // The byte that every match begins with; 0: it may begin with a name, an id or one of `then`.
  char first() const;
  // Whether the pattern consists only of `then`.
  bool empty() const { return elements_.empty(); }
  // Whether the text contains a tag such as <tool_call> or [TOOL_CALLS], which does not occur by chance.
  bool has_tag() const;

 private:
  struct Element {
    enum class Kind { kText, kSpace, kId, kName } kind;
    std::string text;
  };
  std::vector<Element> elements_;
  std::vector<std::string> then_;
};

// Whether `text` begins with one of `words`, or may do so with more text.
CallPattern::Match match_any(std::string_view text, const std::vector<std::string>& words);

// The number of white space bytes at the start, up to a fixed maximum.
size_t leading_space(std::string_view text);

}  // namespace infer
