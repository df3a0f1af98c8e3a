// The HTTP server on real sockets, with a service that echoes the request.
#include "src/server/http_server.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "tests/unit/server/socket_client.h"

namespace infer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Echo : public HttpService {
 public:
  bool admit(const HttpHead& head, const std::string&, HttpResponse& response) override {
    if (head.path != "/refused") return true;
    response.status = 401;
    response.body = "{}";
    return false;
  }
  void handle(HttpRequest request, HttpResponse& response) override {
    if (request.head.path == "/wait") {
      std::unique_lock lock(mutex_);
      ++n_waiting_;
      changed_.notify_all();
      changed_.wait(lock, [&] { return released_; });
    }
    if (request.head.path == "/until-gone") {
      while (!request.client_gone()) usleep(1000);
      gone_ = true;
    }
    if (request.head.path == "/slow") {
      // Long enough for the server to check on a client that closed its side.
      for (int i = 0; i < 100 && !request.client_gone(); ++i) usleep(1000);
    }
    response.content_type = "text/plain";
    response.body = request.body;
  }
  void refused(const std::string&, const HttpHead*, int, const std::string&) override {}

  void wait_for_waiting(int n) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return n_waiting_ >= n; });
  }
  void release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }
  std::atomic<bool> gone_ = false;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int n_waiting_ = 0;
  bool released_ = false;
};

HttpServerOptions options() {
  HttpServerOptions o;
  o.port = 0;
  o.post_paths = {"/", "/refused", "/wait", "/until-gone", "/slow"};
  o.timeouts = {seconds(600), seconds(600), seconds(600)};  // longer than anything here can take
  return o;
}

using Client = test::SocketClient;

std::string post(const std::string& path, const std::string& headers, const std::string& body) {
  return "POST " + path + " HTTP/1.1\r\nHost: h\r\n" + headers + "\r\n" + body;
}
std::string chunked(const std::string& body, const std::string& path = "/") {
  return post(path, "Connection: close\r\nTransfer-Encoding: chunked\r\n", body);
}

int status_of(const std::string& response) {
  return response.starts_with("HTTP/1.1 ") ? std::atoi(response.c_str() + 9) : 0;
}

std::string body_of(const std::string& response) {
  const size_t end = response.find("\r\n\r\n");
  return end == std::string::npos ? "" : response.substr(end + 4);
}

TEST_CASE("http server: stop() returns in time, even if a handler is still running") {
  Echo echo;
  HttpServer server(options(), echo);
  Client client(server.port());
  client.send(post("/wait", "Content-Length: 0\r\n", ""));
  echo.wait_for_waiting(1);
  CHECK(!server.stop(milliseconds(50)));
  CHECK(!server.stop(milliseconds(50)));
  echo.release();
  CHECK(server.stop(seconds(60)));
}

TEST_CASE("http server: chunked bodies that are well-formed") {
  Echo echo;
  HttpServer server(options(), echo);
  const std::pair<const char*, const char*> bodies[] = {
      {"0\r\n\r\n", ""},
      {"3\r\nabc\r\n0\r\n\r\n", "abc"},
      {"0003\r\nabc\r\nA\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", "abc01234567890123456789"},
      {"3;name=value\r\nabc\r\n1 ; x\r\nd\r\n0;last\r\n\r\n", "abcd"},
      {"3\r\nabc\r\n0\r\nExpires: never\r\nX-Sum: 1\r\n\r\n", "abc"},
  };
  for (const auto& [body, data] : bodies) {
    CAPTURE(body);
    Client client(server.port());
    client.send(chunked(body));
    const std::string response = client.receive();
    CHECK(status_of(response) == 200);
    CHECK(body_of(response) == data);
  }
  // The connection continues after the trailers.
  Client kept(server.port());
  kept.send(post("/", "Transfer-Encoding: chunked\r\n", "1\r\na\r\n0\r\nX: y\r\n\r\n") +
            post("/", "Connection: close\r\nContent-Length: 1\r\n", "b"));
  const std::string both = kept.receive();
  CHECK(both.find("\r\n\r\na") != std::string::npos);
  CHECK(both.ends_with("\r\n\r\nb"));
}

TEST_CASE("http server: chunked bodies that are malformed") {
  Echo echo;
  HttpServer server(options(), echo);
  const std::string bodies[] = {
      "10zz\r\n0123456789abcdef\r\n0\r\n\r\n",
      "0x3\r\nabc\r\n0\r\n\r\n",
      "+3\r\nabc\r\n0\r\n\r\n",
      "-3\r\nabc\r\n0\r\n\r\n",
      " 3\r\nabc\r\n0\r\n\r\n",
      "3 \r\nabc\r\n0\r\n\r\n",
      "\r\nabc\r\n0\r\n\r\n",
      ";x\r\nabc\r\n0\r\n\r\n",
      "3\nabc\r\n0\r\n\r\n",
      "3\r\nabc\n0\r\n\r\n",
      "3\r\nabcd\r\n0\r\n\r\n",
      "3\r\nabc\r\n0\r\nno colon\r\n\r\n",
      "3\r\nabc\r\n0\r\nX: y\n\r\n",
      "3\r\nabc\r\n0\r\nX\x01: y\r\n\r\n",
      "11111111111111111\r\nabc\r\n",                          // more than 64 bits
      std::string(100, '0') + "3\r\nabc\r\n0\r\n\r\n",         // too many digits
      "3;" + std::string(1000, 'x') + "\r\nabc\r\n0\r\n\r\n",  // too long a line
      "3\r\nabc\r\n0\r\nX: " + std::string(20000, 'x') + "\r\n\r\n",
  };
  for (const std::string& body : bodies) {
    CAPTURE(body.substr(0, 60));
    Client client(server.port());
    client.send(chunked(body));
    CHECK(status_of(client.receive()) == 400);
  }
}

TEST_CASE("http server: a body of mostly framing is refused before it is read completely") {
  Echo echo;
  HttpServer server(options(), echo);
  for (const std::string& endless : {std::string("0"), "1;" + std::string(200, 'x') + "\r\na\r\n"}) {
    Client client(server.port());
    client.send(chunked(""));
    std::string piece;
    while (piece.size() < 4096) piece += endless;
    size_t n_sent = 0;
    while (n_sent < 64u << 20 && client.send(piece)) n_sent += piece.size();
    CHECK(n_sent < 64u << 20);
  }
}

TEST_CASE("http server: a request has a time limit, however slowly or fast its body arrives") {
  Echo echo;
  HttpServerOptions o = options();
  o.timeouts.read = seconds(1);
  HttpServer server(o, echo);
  for (const char* piece : {"1\r\nx\r\n", "x"}) {
    Client client(server.port());
    client.send(*piece == 'x' ? post("/", "Content-Length: 100000\r\n", "") : chunked(""));
    for (int i = 0; i < 10000 && client.send(piece); ++i) usleep(20000);
    CHECK(status_of(client.receive("\r\n\r\n")) == 408);
  }
}

TEST_CASE("http server: the client is told to continue only once its request is admitted") {
  Echo echo;
  HttpServer server(options(), echo);
  Client refused(server.port());
  refused.send(post("/refused", "Expect: 100-continue\r\nContent-Length: 3\r\n", ""));
  CHECK(status_of(refused.receive()) == 401);
  Client client(server.port());
  client.send(post("/", "Expect: 100-Continue\r\nConnection: close\r\nContent-Length: 3\r\n", ""));
  CHECK(client.receive("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("abc");
  const std::string response = client.receive();
  CHECK(status_of(response) == 200);
  CHECK(body_of(response) == "abc");
}

TEST_CASE("http server: a client that closed its side gets its answer, a disconnected one is noticed") {
  Echo echo;
  HttpServer server(options(), echo);
  for (const char* path : {"/", "/slow"}) {
    Client client(server.port());
    client.send(post(path, "Content-Length: 3\r\n", "abc"));
    client.end_sending();
    const std::string response = client.receive();
    CHECK(status_of(response) == 200);
    CHECK(body_of(response) == "abc");
  }
  Client gone(server.port());
  gone.send(post("/until-gone", "Content-Length: 0\r\n", ""));
  usleep(50000);
  CHECK(!echo.gone_);
  gone.leave();
  for (int i = 0; i < 600000 && !echo.gone_; ++i) usleep(1000);
  CHECK(echo.gone_);
}

TEST_CASE("http server: connections without a request are closed for new ones") {
  Echo echo;
  HttpServerOptions o = options();
  o.max_connections = 4;
  HttpServer server(o, echo);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(std::make_unique<Client>(server.port()));
  clients[1]->send("POST / HT");
  Client busy(server.port());
  busy.send(post("/wait", "Connection: close\r\nContent-Length: 0\r\n", ""));
  echo.wait_for_waiting(1);
  Client one(server.port());
  one.send(post("/", "Content-Length: 1\r\n", "x"));
  CHECK(status_of(one.receive("\r\n\r\nx")) == 200);
  CHECK(clients[0]->receive() == "");  // the oldest
  // The other two have not sent a whole head either. A connection that has just been answered is closed last.
  for (int i = 0; i < 2; ++i) {
    clients.push_back(std::make_unique<Client>(server.port()));
    clients.back()->send(post("/wait", "Connection: close\r\nContent-Length: 1\r\n", "w"));
    echo.wait_for_waiting(2 + i);
  }
  CHECK(clients[1]->receive() == "");
  CHECK(clients[2]->receive() == "");
  one.send(post("/wait", "Connection: close\r\nContent-Length: 1\r\n", "w"));
  echo.wait_for_waiting(4);
  // Requests in progress stay.
  Client late(server.port());
  CHECK(status_of(late.receive()) == 503);
  echo.release();
  CHECK(status_of(busy.receive()) == 200);
  CHECK(status_of(one.receive()) == 200);
}

}  // namespace
}  // namespace infer
