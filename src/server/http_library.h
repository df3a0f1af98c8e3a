// cpp-httplib (0.11.4 and later) as the server uses it: it decompresses bodies and writes responses, on connections and
// heads that are already checked. Any thread; an exchange belongs to one.
#pragma once

#include <memory>
#include <string>

#include "src/server/byte_budget.h"
#include "src/server/connection.h"
#include "src/server/http_service.h"

namespace infer {

struct HttpServerOptions;

// A request on its connection, with the head that was read.
struct HttpExchange {
  Connection& connection;
  const HttpHead& head;
  std::string peer;
  bool admitted = false;
  HttpResponse response;
  bool close = false;  // the connection ends with this request
};

class HttpLibrary {
 public:
  // `options` and `service` outlive it. `listener`: the server's socket.
  HttpLibrary(const HttpServerOptions& options, HttpService& service, int listener);
  ~HttpLibrary();

  // Reads the body, calls the service where the request is admitted, and writes the response. False when the
  // connection has to end. Throws what the service and a lack of memory throw.
  bool serve(HttpExchange& exchange);

 private:
  class Stream;
  class Server;
  ByteBudget bodies_;
  std::unique_ptr<Server> server_;
};

}  // namespace infer
