// Finds stop strings in a stream of text, also across token boundaries. Text that may begin a stop string is held back
// until it is clear. One object per stream.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace infer {

class StopStrings {
 public:
  // Empty strings are ignored.
  explicit StopStrings(const std::vector<std::string>& stops);

  // Returns the text that may be shown now. The stop string that is completed first ends the stream (the longest, if
  // several end together): the text before it is returned, stopped() becomes true, and further text is dropped.
  std::string add(std::string_view text);
  // Returns what was still held back; the stream has ended.
  std::string flush();
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string pending_;  // the longest suffix of the text so far that begins a stop string
  bool stopped_ = false;
};

}  // namespace infer
