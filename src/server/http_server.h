// Accepts connections, one thread each, and lets cpp-httplib decompress bodies and write responses on them. What that
// library lacks is here: a limit of connections, deadlines for whole requests, a strict look at heads and chunks,
// knowledge of a client that left, and an orderly end.
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
  int port = 8080;  // 0: any free one
  int max_connections = 512;
  size_t max_body_bytes = 16 << 20;        // decompressed
  size_t max_buffered_bytes = 256u << 20;  // of all bodies that were read and are not yet dealt with
  HeadLimits head;
  ConnectionTimeouts timeouts;
  std::string tls_certificate, tls_key;  // files; "": no TLS
  std::vector<std::string> post_paths;   // of the requests with a body
};

class HttpServer {
 public:
  // Binds and listens. Throws Error(kIo) when the address is not to be had, and as make_tls_context() does.
  HttpServer(const HttpServerOptions& options, HttpService& service);
  // As stop(), however long that takes.
  ~HttpServer();

  int port() const { return port_; }
  // Stops accepting and closes idle connections; requests under way go on, and their connections end with them.
  void drain();
  // Waits until no connection is left; false when that takes longer.
  bool wait_until_closed(std::chrono::milliseconds timeout) { return connections_.wait_until_empty(timeout); }
  // drain(), breaks the connections that are left, and waits for their threads; false when that takes longer. Whoever
  // cannot wait for the destructor then has to end the process without it: those threads use the server and its
  // service.
  bool stop(std::chrono::milliseconds timeout);

 private:
  void accept_all();
  void accept_one();
  void refuse_connection(int socket, std::string_view response) noexcept;
  void serve(uint64_t id, int socket) noexcept;
  void serve_requests(uint64_t id, Connection& connection);
  // One request; false when the connection has to end.
  bool serve_one(uint64_t id, Connection& connection);
  void send_error(Connection& connection, const HttpHead* head, int status, const std::string& reason);
  // As HttpService::refused(); `connection` may be null.
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
