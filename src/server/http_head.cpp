#include "src/server/http_head.h"

#include <algorithm>
#include <charconv>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "ggml-like/printable.h"
#include "src/server/api_error.h"

namespace infer {
namespace {

ApiError bad(int status, const std::string& expected, const std::string& found) {
  return ApiError(status, "invalid_request_error", expected_found("http", expected, found));
}

bool is_token_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_visible(char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7F; }

bool is_line_of_text(std::string_view line) {
  return std::all_of(line.begin(), line.end(), [](char c) { return is_visible(c) || c == '\t'; });
}

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Removes the next line from `text` and returns it without its line end, which must be CR LF.
std::string_view take_line(std::string_view& text, const HeadLimits& limits, int too_long) {
  const size_t end = text.find("\r\n");
  if (end == std::string_view::npos) throw bad(400, "a head that ends with an empty line", "none");
  if (end > limits.line_bytes)
    throw bad(too_long, concat("lines of at most ", grouped(limits.line_bytes), " bytes"), grouped(end));
  const std::string_view line = text.substr(0, end);
  if (!is_line_of_text(line)) {
    throw bad(400, "printable characters in the head", "others");
  }
  text.remove_prefix(end + 2);
  return line;
}

void read_request_line(std::string_view line, HttpHead& head) {
  const size_t first = line.find(' '), second = line.find(' ', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) {
    throw bad(400, "METHOD TARGET VERSION", printable(line, 60));
  }
  head.method = line.substr(0, first);
  head.target = line.substr(first + 1, second - first - 1);
  const std::string_view version = line.substr(second + 1);
  if (!is_token(head.method)) throw bad(400, "a method", printable(head.method, 60));
  if (!version.starts_with("HTTP/")) throw bad(400, "an HTTP version", printable(version, 60));
  if (version != "HTTP/1.1" && version != "HTTP/1.0") throw bad(505, "HTTP/1.1", printable(version, 60));
  head.http_1_0 = version == "HTTP/1.0";
  if (!head.target.starts_with('/')) throw bad(400, "a path that begins with /", printable(head.target, 60));
  head.path = head.target.substr(0, head.target.find('?'));
  static constexpr std::string_view kMethods[] = {"GET", "HEAD", "POST", "OPTIONS"};
  if (std::find(std::begin(kMethods), std::end(kMethods), head.method) == std::end(kMethods)) {
    throw bad(405, "GET, HEAD, POST or OPTIONS", printable(head.method, 60));
  }
}

void read_length(HttpHead& head) {
  for (const auto& [name, value] : head.headers) {
    if (name == "transfer-encoding") {
      if (lower(value) != "chunked" || head.chunked)
        throw bad(501, "no transfer coding except chunked", printable(value, 60));
      head.chunked = true;
    } else if (name == "content-length") {
      uint64_t length = 0;
      const char* end = value.data() + value.size();
      const auto [at, error] = std::from_chars(value.data(), end, length);
      if (error != std::errc() || at != end) throw bad(400, "a number for Content-Length", printable(value, 60));
      if (head.content_length) throw bad(400, "one Content-Length", "several");
      head.content_length = length;
    }
  }
  if (head.chunked && head.content_length) throw bad(400, "either Content-Length or Transfer-Encoding", "both");
  if (head.chunked && head.http_1_0) throw bad(400, "HTTP/1.1 for a chunked body", "HTTP/1.0");
  if (head.method == "POST" && !head.chunked && !head.content_length) throw bad(411, "a Content-Length", "none");
}

}  // namespace

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_character);
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

bool is_header_line(std::string_view line) {
  const size_t colon = line.find(':');
  return colon != std::string_view::npos && is_token(line.substr(0, colon)) && is_line_of_text(line);
}

const std::string* HttpHead::find(std::string_view name) const {
  for (const auto& [other, text] : headers) {
    if (other == name) return &text;
  }
  return nullptr;
}

std::string_view HttpHead::value(std::string_view name) const {
  const std::string* found = find(name);
  return found ? std::string_view(*found) : std::string_view();
}

HttpHead parse_http_head(std::string_view text, const HeadLimits& limits) {
  if (text.size() > limits.bytes) throw bad(431, concat("a head of at most ", grouped(limits.bytes), " bytes"), "more");
  HttpHead head;
  read_request_line(take_line(text, limits, 414), head);
  for (;;) {
    const std::string_view line = take_line(text, limits, 431);
    if (line.empty()) break;
    if (!is_header_line(line)) throw bad(400, "NAME: VALUE in a header", printable(line, 60));
    const size_t colon = line.find(':');
    if (head.headers.size() == limits.headers) throw bad(431, concat("at most ", limits.headers, " headers"), "more");
    head.headers.emplace_back(lower(line.substr(0, colon)), without_blanks(line.substr(colon + 1)));
  }
  read_length(head);
  head.expects_continue = !head.http_1_0 && lower(head.value("expect")) == "100-continue";
  const auto is_host = [](const auto& header) { return header.first == "host"; };
  if (std::count_if(head.headers.begin(), head.headers.end(), is_host) != 1) {
    throw bad(400, "one Host header", "none or several");
  }
  return head;
}

std::string head_text(const HttpHead& head) {
  std::string text = head.method + " " + head.target + (head.http_1_0 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n");
  for (const auto& [name, value] : head.headers) {
    if (name != "range" && name != "accept-encoding" && name != "expect") text += name + ": " + value + "\r\n";
  }
  return text + "\r\n";
}

}  // namespace infer
