// Routes requests to the endpoints: checks access and turns exceptions into error responses. Called by the HTTP server
// on many threads at once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/server/api.h"
#include "src/server/http_service.h"

namespace infer {

class ApiService : public HttpService {
 public:
  ApiService(const ApiOptions& options, Metrics& metrics, ServerLog& log) : api_(options, metrics, log) {}

  Api& api() { return api_; }

  // Paths that take a body.
  static std::vector<std::string> post_paths();

  bool admit(const HttpHead& head, const std::string& peer, HttpResponse& response) override;
  void handle(HttpRequest request, HttpResponse& response) override;
  void refused(const std::string& peer, const HttpHead* head, int status, const std::string& reason) override;

 private:
  void check_access(const HttpHead& head) const;
  void answer_preflight(const HttpHead& head, HttpResponse& response);
  void add_cors_headers(const HttpHead& head, HttpResponse& response) const;
  static void send_error(const ApiError& error, HttpResponse& response);

  Api api_;
};

}  // namespace infer
