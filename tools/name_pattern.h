// A user's regular expression for tensor names, with a step limit so that every match terminates quickly.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace infer {

class NamePattern {
 public:
  // Whether the pattern has to match part of the name or all of it.
  enum class Extent { kPart, kWhole };
  // `flag`: the flag it was given with, for messages. Throws Error(kInvalidArgument) with the position of the error.
  NamePattern(const char* flag, std::string pattern, Extent extent = Extent::kPart);
  ~NamePattern();
  NamePattern(NamePattern&&) noexcept;

  // Throws Error(kInvalidArgument) if the step limit is reached.
  bool matches(std::string_view name) const;
  const std::string& text() const { return text_; }

 private:
  struct Compiled;
  const char* flag_;
  std::string text_;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace infer
