// Wraps cpp-httplib (0.11.4 and later), which decompresses bodies and writes responses, on connections and heads that
// are already checked. Any thread; an exchange belongs to one thread.
#pragma once

#include <memory>
#include <string>

#include "src/server/byte_budget.h"
#include "src/server/connection.h"
#include "src/server/http_service.h"

namespace infer {

struct HttpServerOptions;

// A request on its connection, with the head already read.
struct HttpExchange {
  Connection& connection;
  const HttpHead& head;
  std::string peer;
  bool admitted = false;
  HttpResponse response;
  bool close = false;  // the connection ends after this request
};

class HttpLibrary {
 public:
  // `options` and `service` must outlive it. `listener`: the server's socket.
  HttpLibrary(const HttpServerOptions& options, HttpService& service, int listener);
  ~HttpLibrary();

  // Reads the body, calls the service if the request is admitted, and writes the response. False if the connection must
  // end. Throws what the service throws, and std::bad_alloc.
  bool serve(HttpExchange& exchange);

 private:
  class Stream;
  class Server;
  ByteBudget bodies_;
  std::unique_ptr<Server> server_;
};

}  // namespace infer
