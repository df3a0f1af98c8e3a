// The interface through which HttpServer has its requests answered.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/server/byte_budget.h"
#include "src/server/http_head.h"

namespace infer {

// What it refers to lives until its response is written.
struct HttpRequest {
  const HttpHead& head;
  std::string body;
  std::string peer;
  std::function<bool()> client_gone;  // never waits
  ByteBudget::Share body_share;       // of the bytes that bodies may have together
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

// What answers requests. Called on many threads at once. An exception that leaves admit(), handle() or a stream ends
// the connection; before the response has begun, the client is told with 503 where memory is short.
class HttpService {
 public:
  virtual ~HttpService() = default;
  // Before the body is read: false when `response` refuses the request.
  virtual bool admit(const HttpHead& head, const std::string& peer, HttpResponse& response) = 0;
  virtual void handle(HttpRequest request, HttpResponse& response) = 0;
  // A request that did not come to handle(), with the status it got; 0: none could be sent. `head` is null where it
  // was not understood.
  virtual void refused(const std::string& peer, const HttpHead* head, int status, const std::string& reason) = 0;
};

}  // namespace infer
