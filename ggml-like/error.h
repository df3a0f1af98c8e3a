// Errors of the whole program. `Error` is for anything that a file, a user, a client or a lack of memory can cause;
// CHECK_INTERNAL is for our own bugs and aborts in every build type. Libraries throw; they never print or exit.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace infer {

enum class ErrorCode {
  kInvalidArgument,  // a flag, a parameter or a request is wrong (program exit code 2)
  kInvalidFile,      // a file is damaged or not of the expected format
  kUnsupported,      // well-formed, but not implemented
  kIo,               // the operating system refused a read, write, open or map
  kOutOfMemory,      // not enough host memory, device memory or KV blocks
  kCancelled,        // the user or client asked to stop
};

// Messages about files, requests and devices read `[where] expected X, found Y` (message.h).
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

// Concatenates its arguments as operator<< prints them.
template <typename... Args>
std::string concat(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return std::move(out).str();
}

// Prints the failed condition and its location to stderr, then aborts.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace infer

#define CHECK_INTERNAL(condition) \
  ((condition) ? static_cast<void>(0) : ::infer::check_failed(#condition, __FILE__, __LINE__))
