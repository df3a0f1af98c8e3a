// Reads HTTP/1.1 responses from a stream: heads, and bodies with a length, in chunks or to the end of the connection.
// What a server sends is hostile: heads are bounded, numbers are checked.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "src/hub/byte_stream.h"
#include "src/hub/http_client.h"

namespace infer {

class ResponseReader {
 public:
  explicit ResponseReader(ByteStream& stream);

  // The next response, after those with a status of 1xx. Throws StreamError for what is not HTTP/1.x, for heads beyond
  // 64 KiB, and for contradicting lengths.
  ResponseHead read_head();
  // Whether any byte of the response has arrived.
  bool has_begun() const { return begun_; }

  // Passes the body on in pieces. False if `on_body` returned false. Throws StreamError if it ends early.
  bool read_body(const std::function<bool(const char* data, size_t bytes)>& on_body);
  // After the body: whether another request may follow on this connection.
  bool can_continue() const { return can_continue_ && whole_body_; }

 private:
  enum class Framing { kNone, kLength, kChunks, kToTheEnd };
  using OnBody = std::function<bool(const char* data, size_t bytes)>;

  bool fill();  // reads more after what is buffered; false at the end of the stream
  std::string read_line(size_t& budget);
  ResponseHead parse_head();
  void find_framing(const ResponseHead& head);
  bool pass(uint64_t bytes, const OnBody& on_body);
  bool read_chunks(const OnBody& on_body);

  ByteStream& stream_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;  // of the bytes in the buffer that have not been used
  bool begun_ = false;
  Framing framing_ = Framing::kNone;
  uint64_t length_ = 0;
  bool can_continue_ = false, whole_body_ = false;
};

}  // namespace infer
