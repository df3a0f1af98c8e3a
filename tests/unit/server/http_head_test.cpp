// The head of a request: what is accepted and what is refused.
#include "src/server/http_head.h"

#include <doctest/doctest.h>

#include "src/server/api_error.h"

namespace infer {
namespace {

int head_status(const std::string& text, const HeadLimits& limits = {}) {
  try {
    parse_http_head(text, limits);
  } catch (const ApiError& error) {
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    return error.status();
  }
  return 200;
}

int headers_status(const std::string& headers) {
  return head_status("POST /x HTTP/1.1\r\nHost: h\r\n" + headers + "\r\n");
}

TEST_CASE("http head: request line and headers") {
  const HttpHead head =
      parse_http_head("POST /v1/x?a=b HTTP/1.1\r\nHost: h\r\nX-Name:\t value \r\ncontent-LENGTH: 12\r\n\r\n", {});
  CHECK(head.method == "POST");
  CHECK(head.path == "/v1/x");
  CHECK(head.target == "/v1/x?a=b");
  CHECK(head.value("x-name") == "value");
  CHECK(head.value("x-other") == "");
  CHECK(head.find("x-other") == nullptr);
  CHECK(head.content_length == 12u);
  CHECK(head.has_body());
  CHECK(!parse_http_head("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", {}).has_body());
  CHECK(parse_http_head("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n", {}).has_body());
  CHECK(parse_http_head("GET / HTTP/1.0\r\nHost: h\r\n\r\n", {}).http_1_0);
}

TEST_CASE("http head: invalid requests") {
  for (const char* text :
       {"", "\r\n", "GET\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/1.1", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: h\r\n\r\n", "G(T / HTTP/1.1\r\nHost: h\r\n\r\n", "GET x HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET / FTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1 \r\nHost: h\r\n\r\n",
        "GET /\x01 HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1\nHost: h\n\n", "GET / HTTP/1.1\r\nHost : h\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\n x\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\rX: y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\n: x\r\n\r\n"}) {
    CAPTURE(text);
    const int status = head_status(text);
    CHECK((status == 400 || status == 505));
  }
  CHECK(head_status("GET / HTTP/2.0\r\nHost: h\r\n\r\n") == 505);
  CHECK(head_status("PUT / HTTP/1.1\r\nHost: h\r\n\r\n") == 405);
}

TEST_CASE("http head: contradictory lengths") {
  CHECK(headers_status("") == 411);
  CHECK(headers_status("Content-Length: 5\r\n") == 200);
  for (const char* wrong :
       {"Content-Length: \r\n", "Content-Length: -5\r\n", "Content-Length: +5\r\n", "Content-Length: 0x5\r\n",
        "Content-Length: 5, 5\r\n", "Content-Length: 5 5\r\n", "Content-Length: 18446744073709551616\r\n",
        "Content-Length: 5\r\nContent-Length: 5\r\n", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"}) {
    CAPTURE(wrong);
    CHECK(headers_status(wrong) == 400);
  }
  CHECK(headers_status("Transfer-Encoding: gzip, chunked\r\n") == 501);
  CHECK(headers_status("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n") == 501);
}

TEST_CASE("http head: limits") {
  const std::string head = "GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(50, 'a') + "\r\n\r\n";
  CHECK(head_status(head, {head.size(), 60, 2}) == 200);
  CHECK(head_status(head, {head.size() - 1, 60, 2}) == 431);
  CHECK(head_status(head, {1000, 52, 2}) == 431);
  CHECK(head_status(head, {1000, 60, 1}) == 431);
  CHECK(head_status("GET /" + std::string(100, 'a') + " HTTP/1.1\r\nHost: h\r\n\r\n", {1000, 60, 2}) == 414);
}

TEST_CASE("http head: what is passed to the library") {
  const HttpHead head = parse_http_head(
      "GET /x?y HTTP/1.1\r\nHOST: h\r\nRange: bytes=0-\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n", {});
  CHECK(head_text(head) == "GET /x?y HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n");
}

}  // namespace
}  // namespace infer
