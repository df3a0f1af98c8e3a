// Accepts connections, one thread each; cpp-httplib decompresses bodies and writes responses on them. This class adds
// what that library lacks: a connection limit, deadlines for whole requests, strict checking of heads and chunks,
// detection of disconnected clients, and an orderly shutdown.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "src/server/connection.h"
#include "src/server/connection_table.h"
#include "src/server/http_library.h"
#include "src/server/http_service.h"

namespace infer {

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  int port = 8080;  // 0: any free port
  int max_connections = 512;
  size_t max_body_bytes = 16 << 20;        // decompressed
  size_t max_buffered_bytes = 256u << 20;  // of all bodies read but not yet processed
  HeadLimits head;
  ConnectionTimeouts timeouts;
  std::string tls_certificate, tls_key;  // files; "": no TLS
  std::vector<std::string> post_paths;   // paths that accept a body
};

class HttpServer {
 public:
  // Binds and listens. Throws Error(kIo) if the address is unavailable, and what make_tls_context() throws.
  HttpServer(const HttpServerOptions& options, HttpService& service);
  // Like stop(), but without a timeout.
  ~HttpServer();

  int port() const { return port_; }
  // Stops accepting and closes idle connections; requests in progress finish, and then their connections close.
  void drain();
  // Waits until no connection is left; false after the timeout.
  bool wait_until_closed(std::chrono::milliseconds timeout) { return connections_.wait_until_empty(timeout); }
  // drain(), then breaks the remaining connections and waits for their threads; false after the timeout. In that case
  // the caller must wait for the destructor or end the process without it, because those threads use the server and its
  // service.
  bool stop(std::chrono::milliseconds timeout);

 private:
  void accept_all();
  void accept_one();
  void refuse_connection(int socket, std::string_view response) noexcept;
  void serve(uint64_t id, int socket) noexcept;
  void serve_requests(uint64_t id, Connection& connection);
  // Serves one request; false if the connection must end.
  bool serve_one(uint64_t id, Connection& connection);
  void send_error(Connection& connection, const HttpHead* head, int status, const std::string& reason);
  // Like HttpService::refused(); `connection` may be null.
  void report(const Connection* connection, int status, const char* reason) noexcept;

  const HttpServerOptions options_;
  HttpService& service_;
  std::unique_ptr<TlsContext> tls_;
  std::unique_ptr<HttpLibrary> library_;
  int listener_ = -1, wake_ = -1;
  int port_ = 0;
  ConnectionTable connections_;
  std::thread acceptor_;
};

}  // namespace infer
