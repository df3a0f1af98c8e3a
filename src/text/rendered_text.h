// The text a template rendered, and which of its bytes came from the caller. Plain data.
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
  // The bytes that came from variables, such as the messages of a conversation, in ascending order with gaps in
  // between. The template itself wrote the rest.
  std::vector<TextRange> from_caller;
};

}  // namespace infer
