#include "src/server/chunked_body.h"

#include <algorithm>
#include <charconv>

#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "ggml-like/printable.h"
#include "src/server/http_head.h"

namespace infer {

bool ChunkedBody::fail(const std::string& expected, const std::string& found) {
  state_ = kFailed;
  error_ = expected_found("http", expected, found);
  return false;
}

ssize_t ChunkedBody::read(char* data, size_t size) {
  if (state_ == kStart && !begin_chunk()) return state_ == kEnd ? 0 : -1;
  if (state_ == kEnd) return 0;
  if (state_ == kFailed) return -1;
  const ssize_t n = read_(data, static_cast<size_t>(std::min<uint64_t>(size, left_)));
  if (n <= 0) {
    state_ = kFailed;
    return -1;
  }
  left_ -= static_cast<uint64_t>(n);
  n_data_ += static_cast<uint64_t>(n);
  if (left_ == 0 && !end_chunk()) return -1;
  return n;
}

bool ChunkedBody::begin_chunk() {
  std::string line;
  if (!read_line(kMaxLine, line)) return false;
  const char* end = line.data() + line.size();
  const auto [at, error] = std::from_chars(line.data(), end, left_, 16);
  const std::string_view rest(at, static_cast<size_t>(end - at));
  const size_t name = rest.find_first_not_of(" \t");
  const bool extended = name != std::string_view::npos && rest[name] == ';';
  if (error != std::errc() || at - line.data() > kMaxDigits || (!rest.empty() && !extended)) {
    return fail("a chunk's size in hexadecimal digits", printable(line, 60));
  }
  state_ = kData;
  return left_ > 0 || read_trailers();
}

bool ChunkedBody::end_chunk() {
  std::string line;
  if (!read_line(0, line)) return false;
  state_ = kStart;
  return true;
}

bool ChunkedBody::read_trailers() {
  for (size_t left = kMaxTrailers;;) {
    std::string line;
    if (!read_line(left, line)) return false;
    if (line.empty()) break;
    left -= line.size();
    if (!is_header_line(line)) return fail("NAME: VALUE in a trailer", printable(line, 60));
  }
  state_ = kEnd;
  return false;
}

bool ChunkedBody::read_line(size_t max_bytes, std::string& line) {
  for (;;) {
    char c = 0;
    if (read_(&c, 1) != 1) {
      state_ = kFailed;
      return false;
    }
    if (++n_framing_ > kFreeFraming + kFramingPerByte * n_data_)
      return fail("chunks of more than a few bytes", "smaller ones");
    const bool ends = !line.empty() && line.back() == '\r';
    if (ends != (c == '\n')) return fail("chunk lines that end with CR LF", "another line end");
    if (ends) break;
    line += c;
    if (c != '\r' && line.size() > max_bytes) {
      if (max_bytes == 0) return fail("a line end after a chunk", "more data");
      return fail(concat("at most ", max_bytes, " bytes in a chunk's size line or in trailers"), "more");
    }
  }
  line.pop_back();
  return true;
}

}  // namespace infer
