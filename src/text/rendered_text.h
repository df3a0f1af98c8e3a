// A text that a template wrote, and which of its bytes came from elsewhere. Plain data.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace infer {

// Bytes [begin, end) of a text.
struct TextRange {
  size_t begin, end;
  bool operator==(const TextRange&) const = default;
};

struct RenderedText {
  std::string text;
  // What came from the variables, such as the messages of a conversation; ascending, apart from each other. The rest
  // the template wrote itself.
  std::vector<TextRange> from_caller;
};

}  // namespace infer
