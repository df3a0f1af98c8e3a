// A regular expression of the user's over tensor names, with a limit on the steps, so that no pattern runs for long.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace infer {

class NamePattern {
 public:
  // What of a name the pattern has to be: some part, or all of it.
  enum class Extent { kPart, kWhole };
  // Throws Error(kInvalidArgument) with the place of the mistake.
  explicit NamePattern(std::string pattern, Extent extent = Extent::kPart);
  ~NamePattern();
  NamePattern(NamePattern&&) noexcept;

  // Throws Error(kInvalidArgument) when the limit is reached.
  bool matches(std::string_view name) const;
  const std::string& text() const { return text_; }

 private:
  struct Compiled;
  std::string text_;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace infer
