#include "src/hub/response_reader.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>

#include "ggml-like/error.h"

namespace infer {
namespace {

constexpr size_t kReadBufferBytes = size_t{256} << 10;
constexpr size_t kHeadBytes = size_t{64} << 10;

StreamError not_http() { return StreamError("the answer is not HTTP"); }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) || std::strchr("!#$%&'*+-.^_`|~", c) != nullptr;
  });
}

template <typename Number>
bool parse_whole(std::string_view text, Number& value, int base) {
  // from_chars would take a minus sign.
  if (text.empty() || !std::isxdigit(static_cast<unsigned char>(text.front()))) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

ResponseReader::ResponseReader(ByteStream& stream) : stream_(stream), buffer_(kReadBufferBytes) {}

bool ResponseReader::fill() {
  if (begin_ == end_) begin_ = end_ = 0;
  if (end_ == buffer_.size()) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  const size_t n = stream_.read(buffer_.data() + end_, buffer_.size() - end_);
  end_ += n;
  begun_ = begun_ || n > 0;
  return n > 0;
}

// Without its end. Takes its size from the budget.
std::string ResponseReader::read_line(size_t& budget) {
  for (size_t searched = 0;;) {
    const char* first = buffer_.data() + begin_;
    const size_t there = end_ - begin_;
    if (const void* found = std::memchr(first + searched, '\n', there - searched)) {
      const size_t size = static_cast<size_t>(static_cast<const char*>(found) - first);
      if (size + 1 > budget) throw StreamError("the head of the answer is too long");
      budget -= size + 1;
      begin_ += size + 1;
      std::string line(first, size);
      if (line.ends_with('\r')) line.pop_back();
      return line;
    }
    if (there > budget) throw StreamError("the head of the answer is too long");
    searched = there;
    if (!fill())
      throw StreamError(begun_ ? "the answer ended in its head" : "the connection was closed without an answer");
  }
}

ResponseHead ResponseReader::parse_head() {
  size_t budget = kHeadBytes;
  const std::string status = read_line(budget);
  ResponseHead head;
  // HTTP/1.1 200 OK
  if (!status.starts_with("HTTP/1.") || status.size() < 12 || status[8] != ' ' ||
      !parse_whole(std::string_view(status).substr(9, 3), head.status, 10) || head.status < 100) {
    throw not_http();
  }
  can_continue_ = status[7] == '1';
  for (std::string line = read_line(budget); !line.empty(); line = read_line(budget)) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || !is_token(std::string_view(line).substr(0, colon))) throw not_http();
    head.headers.emplace_back(lower_case(line.substr(0, colon)), trimmed(std::string_view(line).substr(colon + 1)));
  }
  return head;
}

void ResponseReader::find_framing(const ResponseHead& head) {
  std::string length;
  framing_ = Framing::kToTheEnd;
  for (const auto& [name, value] : head.headers) {
    if (name == "connection" && lower_case(value).find("close") != std::string::npos) can_continue_ = false;
    if (name == "transfer-encoding") {
      if (lower_case(value) != "chunked") throw StreamError("the answer has an unknown transfer encoding", false);
      framing_ = Framing::kChunks;
    }
    if (name != "content-length") continue;
    if (!parse_whole(value, length_, 10) || (!length.empty() && length != value)) {
      throw StreamError("the answer has no valid length");
    }
    length = value;
  }
  if (framing_ == Framing::kToTheEnd && !length.empty()) framing_ = Framing::kLength;
  if (head.status == 204 || head.status == 304) framing_ = Framing::kNone;
  if (framing_ == Framing::kToTheEnd) can_continue_ = false;
}

ResponseHead ResponseReader::read_head() {
  begun_ = begin_ < end_;
  whole_body_ = false;
  for (int interim = 0; interim < 10; ++interim) {
    ResponseHead head = parse_head();
    if (head.status < 200) continue;
    find_framing(head);
    return head;
  }
  throw not_http();
}

bool ResponseReader::pass(uint64_t bytes, const OnBody& on_body) {
  while (bytes > 0) {
    if (begin_ == end_ && !fill()) throw StreamError("the answer ended early");
    const size_t n = static_cast<size_t>(std::min<uint64_t>(bytes, end_ - begin_));
    begin_ += n;
    bytes -= n;
    if (!on_body(buffer_.data() + begin_ - n, n)) return false;
  }
  return true;
}

bool ResponseReader::read_chunks(const OnBody& on_body) {
  for (;;) {
    size_t budget = kHeadBytes;
    const std::string line = read_line(budget);
    uint64_t size = 0;
    if (!parse_whole(trimmed(std::string_view(line).substr(0, line.find(';'))), size, 16)) throw not_http();
    if (size == 0) {
      while (!read_line(budget).empty()) {  // trailers
      }
      return true;
    }
    if (!pass(size, on_body)) return false;
    if (!read_line(budget).empty()) throw not_http();
  }
}

bool ResponseReader::read_body(const OnBody& on_body) {
  bool all = true;
  switch (framing_) {
    case Framing::kNone:
      break;
    case Framing::kLength:
      all = pass(length_, on_body);
      break;
    case Framing::kChunks:
      all = read_chunks(on_body);
      break;
    case Framing::kToTheEnd:
      while (all && (begin_ < end_ || fill())) all = pass(end_ - begin_, on_body);
      break;
  }
  whole_body_ = all;
  return all;
}

}  // namespace infer
