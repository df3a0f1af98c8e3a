// Strict parser for the chunked transfer coding (RFC 9112, section 7.1): sizes are hexadecimal digits only, lines end
// with CR LF, and the framing around the data is bounded. One thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace infer {

class ChunkedBody {
 public:
  // `read` returns the bytes after a request's head, as Connection::read() does.
  explicit ChunkedBody(std::function<ssize_t(char*, size_t)> read) : read_(std::move(read)) {}

  // Reads data from the chunks: at least one byte, 0 at the end of the body, -1 if the body is malformed or does not
  // arrive. Chunk extensions and trailers are checked and skipped.
  ssize_t read(char* data, size_t size);

  // What is wrong with the body; "" if it merely ended too early.
  const std::string& error() const { return error_; }

 private:
  static constexpr ptrdiff_t kMaxDigits = 16;        // of a chunk's size
  static constexpr size_t kMaxLine = 256;            // bytes of a chunk's size and extensions
  static constexpr size_t kMaxTrailers = 8192;       // bytes of all trailers
  static constexpr uint64_t kFreeFraming = 1 << 16;  // bytes besides the data, plus kFramingPerByte for each data byte
  static constexpr uint64_t kFramingPerByte = 8;

  bool begin_chunk();
  bool end_chunk();
  bool read_trailers();
  // Reads a line; `line` does not include the line end.
  bool read_line(size_t max_bytes, std::string& line);
  bool fail(const std::string& expected, const std::string& found);

  const std::function<ssize_t(char*, size_t)> read_;
  uint64_t left_ = 0;  // bytes left in the chunk
  uint64_t n_data_ = 0, n_framing_ = 0;
  enum { kStart, kData, kEnd, kFailed } state_ = kStart;
  std::string error_;
};

}  // namespace infer
