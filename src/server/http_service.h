// The interface that HttpServer calls to answer requests.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/server/byte_budget.h"
#include "src/server/http_head.h"

namespace infer {

// Everything it refers to lives until the response is written.
struct HttpRequest {
  const HttpHead& head;
  std::string body;
  std::string peer;
  std::function<bool()> client_gone;  // never waits
  ByteBudget::Share body_share;       // this body's share of the budget for all bodies
};

struct HttpResponse {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string content_type = "application/json";
  std::string body;
  // Used instead of a body: writes it in pieces. `write` returns false once the client has disconnected.
  using Write = std::function<bool(std::string_view)>;
  std::function<void(const Write& write)> stream;
};

// Answers requests. Called on many threads at once. An exception from admit(), handle() or a stream ends the
// connection; if the response has not begun and memory is short, the client gets a 503.
class HttpService {
 public:
  virtual ~HttpService() = default;
  // Called before the body is read; false if `response` refuses the request.
  virtual bool admit(const HttpHead& head, const std::string& peer, HttpResponse& response) = 0;
  virtual void handle(HttpRequest request, HttpResponse& response) = 0;
  // Reports a request that never reached handle(), with the status it got; 0: none could be sent. `head` is null if it
  // could not be parsed.
  virtual void refused(const std::string& peer, const HttpHead* head, int status, const std::string& reason) = 0;
};

}  // namespace infer
