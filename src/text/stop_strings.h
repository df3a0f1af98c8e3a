// Finds stop strings in a stream of text, also across the borders of tokens: text that may be the beginning of one is
// held back until it is decided. One object per stream.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace infer {

class StopStrings {
 public:
  // Empty strings are ignored.
  explicit StopStrings(const std::vector<std::string>& stops);

  // The text that may be shown now. At the stop string that is complete first (of several that end together, the
  // longest) the text before it is returned, stopped() is true from then on, and further text is dropped.
  std::string add(std::string_view text);
  // What was still held back: the stream has ended.
  std::string flush();
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string pending_;  // the longest end of the text so far that begins a stop string
  bool stopped_ = false;
};

}  // namespace infer
