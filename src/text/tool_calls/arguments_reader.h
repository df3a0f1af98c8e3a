// Reads the arguments of one call as its text arrives and writes them as JSON text. One object per call.
#pragma once

#include <string>
#include <string_view>

namespace infer {

class ArgumentsReader {
 public:
  virtual ~ArgumentsReader() = default;

  // Reads from the start of `text` as far as it can decide, and appends the arguments to `out`. Returns how many bytes
  // are consumed; the next call's text begins with the rest. REQUIRES: !done(). The text consists of whole UTF-8
  // characters.
  virtual size_t read(std::string_view text, std::string& out) = 0;
  // The answer ended within the arguments; `rest` is what read() did not consume.
  virtual void finish(std::string_view rest, std::string& out) = 0;
  // The arguments have ended.
  bool done() const { return done_; }

 protected:
  bool done_ = false;
};

}  // namespace infer
