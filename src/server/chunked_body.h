// The chunked transfer coding (RFC 9112, section 7.1), read strictly: sizes are hexadecimal digits alone, lines end
// with CR LF, and what frames the data is bounded. One thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace infer {

class ChunkedBody {
 public:
  // `read` gives the bytes that follow a request's head, as Connection::read() does.
  explicit ChunkedBody(std::function<ssize_t(char*, size_t)> read) : read_(std::move(read)) {}

  // The data of the chunks: at least one byte, 0 at the end of the body, -1 when it is not well-formed or does not
  // arrive. Extensions of chunks and trailers are checked and passed over.
  ssize_t read(char* data, size_t size);

  // What is wrong with the body; "" when it just ended too early.
  const std::string& error() const { return error_; }

 private:
  static constexpr ptrdiff_t kMaxDigits = 16;        // of a chunk's size
  static constexpr size_t kMaxLine = 256;            // bytes of a chunk's size and extensions
  static constexpr size_t kMaxTrailers = 8192;       // bytes of all
  static constexpr uint64_t kFreeFraming = 1 << 16;  // bytes beside the data, and kFramingPerByte more for each of it
  static constexpr uint64_t kFramingPerByte = 8;

  bool begin_chunk();
  bool end_chunk();
  bool read_trailers();
  // A line without its end.
  bool read_line(size_t max_bytes, std::string& line);
  bool fail(const std::string& what);

  const std::function<ssize_t(char*, size_t)> read_;
  uint64_t left_ = 0;  // of the chunk
  uint64_t n_data_ = 0, n_framing_ = 0;
  enum { kStart, kData, kEnd, kFailed } state_ = kStart;
  std::string error_;
};

}  // namespace infer
