// Accepts connections, one thread each, and lets cpp-httplib read requests and write responses on them. What that
// library (0.11.4 and later) lacks is here: a limit of connections, deadlines for whole requests, a strict look at
// the head, knowledge of a client that left, and an orderly end.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/server/connection.h"
#include "src/server/http_head.h"

namespace infer {

// What it refers to lives until its response is written.
struct HttpRequest {
  const HttpHead& head;
  std::string body;
  std::string peer;
  std::function<bool()> client_gone;  // never waits
};

struct HttpResponse {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string content_type = "application/json";
  std::string body;
  // Instead of a body: writes it piece by piece. `write` is false once the client is gone.
  using Write = std::function<bool(std::string_view)>;
  std::function<void(const Write& write)> stream;
};

// What answers requests. Called on many threads at once.
class HttpService {
 public:
  virtual ~HttpService() = default;
  // Before the body is read: false when `response` refuses the request.
  virtual bool admit(const HttpHead& head, const std::string& peer, HttpResponse& response) = 0;
  virtual void handle(HttpRequest request, HttpResponse& response) = 0;
  // A request that did not come to handle(), with the status it got; 0: none could be sent.
  virtual void refused(const std::string& peer, int status, const std::string& reason) = 0;
};

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  int port = 8080;  // 0: any free one
  int max_connections = 512;
  size_t max_body_bytes = 16 << 20;  // decompressed
  HeadLimits head;
  ConnectionTimeouts timeouts;
  std::string tls_certificate, tls_key;  // files; "": no TLS
  std::vector<std::string> post_paths;   // of the requests with a body
};

class HttpServer {
 public:
  // Binds and listens. Throws Error(kIo) when the address is not to be had, and as make_tls_context() does.
  HttpServer(const HttpServerOptions& options, HttpService& service);
  // As stop().
  ~HttpServer();

  int port() const { return port_; }
  // Stops accepting and closes idle connections; requests under way go on, and their connections end with them.
  void drain();
  // Waits until no connection is left; false when that takes longer.
  bool wait_until_closed(std::chrono::milliseconds timeout);
  // drain(), breaks the connections that are left, and waits for their threads.
  void stop();

 private:
  class Library;
  class Stream;
  struct Exchange;
  void accept_all();
  void refuse_connection(int socket);
  void serve(uint64_t id, int socket);
  // One request; false when the connection has to end.
  bool serve_one(Connection& connection);
  void send_error(Connection& connection, int status, const std::string& reason);
  bool set_idle(uint64_t id, bool idle);  // false: the server drains

  const HttpServerOptions options_;
  HttpService& service_;
  std::unique_ptr<TlsContext> tls_;
  std::unique_ptr<Library> library_;
  int listener_ = -1, wake_ = -1;
  int port_ = 0;

  std::mutex mutex_;
  std::condition_variable closed_;
  struct Open {
    int socket;  // -1: being closed
    bool idle;
  };
  std::unordered_map<uint64_t, Open> connections_;  // guarded by mutex_
  bool draining_ = false;                           // guarded by mutex_

  std::thread acceptor_;
};

}  // namespace infer
