// The head of an HTTP/1.x request: request line and headers, checked more strictly than the HTTP library does, before
// the library sees them. Pure functions; any thread.
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
  size_t line_bytes = 8000;  // per line; the library skips longer ones
  size_t headers = 100;
};

struct HttpHead {
  std::string method;
  std::string path;    // of the target; not percent-decoded, since no route needs it
  std::string target;  // as sent
  bool http_1_0 = false;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lowercase, values trimmed
  std::optional<uint64_t> content_length;
  bool chunked = false;

  bool expects_continue = false;  // the client waits for "100 Continue" before it sends the body

  bool has_body() const { return chunked || content_length.value_or(0) > 0; }
  const std::string* find(std::string_view lower_case_name) const;  // the first one; nullptr if there is none
  std::string_view value(std::string_view lower_case_name) const;   // "" if there is none
};

// `text`: up to and including the empty line. Throws ApiError: 400 for a malformed or contradictory request or a
// missing Host, 405 for methods that no route has, 411 for a POST without a length, 414 and 431 for excessive lengths,
// 501 for transfer codings other than chunked, 505 for versions other than 1.0 and 1.1.
HttpHead parse_http_head(std::string_view text, const HeadLimits& limits);

// Whether a line, without its line end, has the form NAME: VALUE of headers and trailers.
bool is_header_line(std::string_view line);
// A token as defined by RFC 9110: the name of a header or method.
bool is_token(std::string_view text);
// With its ASCII letters in lowercase.
std::string lower(std::string_view text);

// The head as text for the library, without headers that would enable features no client of this server needs (ranges,
// compressed responses), and without Expect, which is handled here.
std::string head_text(const HttpHead& head);

}  // namespace infer
