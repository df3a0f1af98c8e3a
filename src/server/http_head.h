// The head of an HTTP/1.x request: request line and headers, checked more strictly than the HTTP library does it,
// before the library sees it. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace infer {

struct HeadLimits {
  size_t bytes = 32768;      // of the whole head
  size_t line_bytes = 8000;  // of a line; the library skips longer ones
  size_t headers = 100;
};

struct HttpHead {
  std::string method;
  std::string path;    // of the target, percent-decoding is not done: no route needs any
  std::string target;  // as sent
  bool http_1_0 = false;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case, values trimmed
  std::optional<uint64_t> content_length;
  bool chunked = false;

  bool expects_continue = false;  // the client waits for "100 Continue" before it sends the body

  bool has_body() const { return chunked || content_length.value_or(0) > 0; }
  const std::string* find(std::string_view lower_case_name) const;  // the first, nullptr when there is none
  std::string_view value(std::string_view lower_case_name) const;   // "" when there is none
};

// `text`: up to and including the empty line. Throws ApiError: 400 for what is no request, contradicts itself or names
// no host, 405 for methods that no route has, 411 for a POST without a length, 414 and 431 for too long ones, 501 for
// transfer codings other than chunked, 505 for versions other than 1.0 and 1.1.
HttpHead parse_http_head(std::string_view text, const HeadLimits& limits);

// Whether a line without its end is NAME: VALUE, as headers and trailers are.
bool is_header_line(std::string_view line);
// A token of RFC 9110: the name of a header or method.
bool is_token(std::string_view text);

// The head as text for the library, without the headers that would make it do what no client of this server needs
// (ranges, compressed responses) or what is done here (Expect).
std::string head_text(const HttpHead& head);

}  // namespace infer
