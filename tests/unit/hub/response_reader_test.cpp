#include "src/hub/response_reader.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

using namespace infer;

namespace {

// A text in pieces of a certain size.
class TextStream final : public ByteStream {
 public:
  TextStream(std::string text, size_t piece) : text_(std::move(text)), piece_(piece) {}
  size_t read(char* data, size_t bytes) override {
    const size_t n = std::min({bytes, piece_, text_.size() - at_});
    std::memcpy(data, text_.data() + at_, n);
    at_ += n;
    return n;
  }
  void write(std::string_view) override {}

 private:
  const std::string text_;
  const size_t piece_;
  size_t at_ = 0;
};

struct Response {
  ResponseHead head;
  std::string body;
  bool can_continue = false;
};

Response read_one(ResponseReader& reader) {
  Response response;
  response.head = reader.read_head();
  const bool whole = reader.read_body([&](const char* data, size_t n) {
    response.body.append(data, n);
    return true;
  });
  CHECK(whole);
  response.can_continue = reader.can_continue();
  return response;
}

Response response_of(const std::string& text, size_t piece = 1000000) {
  TextStream stream(text, piece);
  ResponseReader reader(stream);
  return read_one(reader);
}

}  // namespace

TEST_CASE("a response with a length, however it arrives") {
  const std::string text = "HTTP/1.1 206 Partial\r\nContent-Length: 5\r\nX-A:  b%2Bc d \r\n\r\nhello";
  for (const size_t piece : {1, 2, 3, 7, 1000}) {
    const Response response = response_of(text, piece);
    CHECK(response.head.status == 206);
    CHECK(response.head.get("x-a") == "b%2Bc d");
    CHECK(response.body == "hello");
    CHECK(response.can_continue);
  }
}

TEST_CASE("chunks, with extensions and trailers") {
  const std::string text =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\nA;x=y\r\n0123456789\r\n0\r\nX: y\r\n\r\n";
  for (const size_t piece : {1, 4, 1000}) {
    const Response response = response_of(text, piece);
    CHECK(response.body == "hello0123456789");
    CHECK(response.can_continue);
  }
}

TEST_CASE("a body to the end of the connection") {
  const Response response = response_of("HTTP/1.0 200 OK\n\nall of it");
  CHECK(response.body == "all of it");
  CHECK_FALSE(response.can_continue);
}

TEST_CASE("several responses on one connection") {
  TextStream stream(
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"
      "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n"
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nb",
      3);
  ResponseReader reader(stream);
  CHECK(read_one(reader).body == "a");
  CHECK(read_one(reader).head.status == 304);
  const Response last = read_one(reader);
  CHECK(last.body == "b");
  CHECK_FALSE(last.can_continue);
}

TEST_CASE("a large body passes in pieces") {
  const std::string body(3000000, 'x');
  CHECK(response_of("HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n" + body, 100000).body == body);
}

TEST_CASE("reading stops when the receiver wants no more") {
  TextStream stream("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 100);
  ResponseReader reader(stream);
  reader.read_head();
  CHECK_FALSE(reader.read_body([](const char*, size_t) { return false; }));
  CHECK_FALSE(reader.can_continue());
}

TEST_CASE("what is not HTTP, or ends early") {
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  for (const std::string& text : {std::string(""),
                                  std::string("SSH-2.0\r\n"),
                                  std::string("HTTP/1.1\r\n\r\n"),
                                  std::string("HTTP/1.1 20\r\n\r\n"),
                                  std::string("HTTP/1.1 -20 x\r\n\r\n"),
                                  std::string("HTTP/2.0 200 OK\r\n\r\n"),
                                  ok,
                                  ok + "X\r\n\r\n",
                                  ok + ": y\r\n\r\n",
                                  ok + " folded: y\r\n\r\n",
                                  ok + "A b: y\r\n\r\n",
                                  ok + "Content-Length: 5\r\n\r\nhell",
                                  ok + "Content-Length: -5\r\n\r\n",
                                  ok + "Content-Length: 5x\r\n\r\nhello",
                                  ok + "Content-Length: 99999999999999999999\r\n\r\n",
                                  ok + "Content-Length: \r\n\r\n",
                                  ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nhi",
                                  ok + "Transfer-Encoding: gzip\r\n\r\n",
                                  ok + "Transfer-Encoding: chunked\r\n\r\nx\r\n",
                                  ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhell",
                                  ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\n0\r\n\r\n",
                                  ok + "Transfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n",
                                  ok + "Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n",
                                  ok + "X: " + std::string(100000, 'y'),
                                  ok + "X: " + std::string(100000, 'y') + "\r\n\r\n",
                                  std::string(1000, '\n')}) {
    CAPTURE(text.substr(0, 100));
    CHECK_THROWS_AS(response_of(text, 4096), StreamError);
  }
  std::string interim;
  for (int i = 0; i < 20; ++i) interim += "HTTP/1.1 102 Processing\r\n\r\n";
  CHECK_THROWS_AS(response_of(interim), StreamError);
}
