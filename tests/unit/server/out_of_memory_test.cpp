// A request that runs out of memory, at any point, gets 503 or loses its connection; the server continues.
#include <doctest/doctest.h>

#include "src/server/http_server.h"
#include "tests/unit/server/allocations.h"
#include "tests/unit/server/loaded_service.h"
#include "tests/unit/server/socket_client.h"

namespace infer {
namespace {

using test::FailingAllocation;
using test::SocketClient;

std::string request(const std::string& method, const std::string& path, const std::string& body,
                    const std::string& headers = "") {
  std::string text = method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers;
  if (method == "POST") text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return text + "\r\n" + body;
}

class Served {
 public:
  Served() : log_(LogLevel::kError, false), service_(api_options(), metrics_, log_) {
    service_.api().set_model(test::random_served_model(metrics_));
    HttpServerOptions http;
    http.port = 0;
    http.post_paths = ApiService::post_paths();
    server_ = std::make_unique<HttpServer>(http, service_);
  }
  ~Served() {
    server_.reset();
    service_.api().close_model();
  }
  static ApiOptions api_options() {
    ApiOptions options;
    options.cors_origins = {"*"};
    return options;
  }

  std::string ask(const std::string& text) {
    SocketClient client(server_->port());
    client.send(text);
    return client.receive();
  }

  Metrics metrics_;
  ServerLog log_;
  ApiService service_;
  std::unique_ptr<HttpServer> server_;
};

const std::string kPage = "Origin: http://page.example\r\n";
const std::string kCompletion =
    R"({"prompt": [5, 6, 7], "max_tokens": 3, "ignore_eos": true, "temperature": 0, "n": 2, "logprobs": 2)";

const std::string kRequests[] = {
    request("GET", "/health", ""),
    request("GET", "/stats", "", kPage),
    request("OPTIONS", "/v1/completions", "", kPage + "Access-Control-Request-Headers: x-a, x-b\r\n"),
    request("GET", "/nowhere", ""),
    request("POST", "/tokenize", R"({"content": "a text that is not very long", "with_pieces": true})"),
    request("POST", "/detokenize", R"({"tokens": [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18]})"),
    request("POST", "/v1/embeddings", R"({"input": [[5], [6, 7]]})"),
    request("POST", "/v1/completions", kCompletion + "}"),
    request("POST", "/v1/completions", kCompletion + R"(, "stream": true})"),
    request("POST", "/v1/completions", R"({"prompt": "x", "logit_bias": {"1": 1, "2": [[{"a": "b"}]]}})"),
    "POST /tokenize HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    "11\r\n{\"content\": \"abc\"\r\n1\r\n}\r\n0\r\n\r\n",
};

// Runs a request with the N-th allocation failing, for N = 1, 2, 3, ... until there is no N-th allocation.
void fail_every_allocation(Served& served, const std::string& text, FailingAllocation::Mode mode) {
  CAPTURE(text);
  const std::string whole = served.ask(text);
  const int status = std::atoi(whole.c_str() + 9);
  for (size_t n = 1;; ++n) {
    CAPTURE(n);
    std::string response;
    bool failed = false;
    {
      const FailingAllocation failing(n, mode);
      response = served.ask(text);
      failed = failing.failed();
    }
    if (!response.empty()) {
      const int got = std::atoi(response.c_str() + 9);
      const bool is_well = got == 503 || got == status;
      CHECK(is_well);
      if (got == 503) CHECK(response.find("out_of_memory") != std::string::npos);
    }
    if (failed) continue;
    CHECK(n > 10);
    CHECK(std::atoi(response.c_str() + 9) == status);
    break;
  }
}

TEST_CASE("out of memory: any one allocation of a request fails") {
  Served served;
  for (const std::string& text : kRequests) fail_every_allocation(served, text, FailingAllocation::kOne);
  CHECK(served.ask(request("POST", "/v1/completions", kCompletion + "}")).starts_with("HTTP/1.1 200 "));
  CHECK(served.metrics_.gauges().cache().used == 0);
}

TEST_CASE("out of memory: all allocations of a request fail from some point on") {
  Served served;
  for (const std::string& text : kRequests) fail_every_allocation(served, text, FailingAllocation::kAllFrom);
  CHECK(served.ask(request("POST", "/v1/completions", kCompletion + "}")).starts_with("HTTP/1.1 200 "));
  CHECK(served.metrics_.gauges().cache().used == 0);
}

TEST_CASE("out of memory: an allocation on the engine's thread fails, alone or with all that follow") {
  std::unique_ptr<Served> served;
  const std::string completions[] = {request("POST", "/v1/completions", kCompletion + "}"),
                                     request("POST", "/v1/completions", kCompletion + R"(, "stream": true})"),
                                     request("POST", "/v1/embeddings", R"({"input": [[5], [6, 7]]})")};
  {
    served = std::make_unique<Served>();
    // The engine's thread first allocates for the first request.
    const FailingAllocation none(SIZE_MAX, FailingAllocation::kOne);
    CHECK(served->ask(completions[0]).starts_with("HTTP/1.1 200 "));
  }
  for (const FailingAllocation::Mode mode : {FailingAllocation::kOne, FailingAllocation::kAllFrom}) {
    for (const std::string& text : completions) {
      fail_every_allocation(*served, text, mode);
      CHECK(served->ask(text).starts_with("HTTP/1.1 200 "));
    }
  }
  CHECK(served->metrics_.gauges().cache().used == 0);
}

TEST_CASE("out of memory: accepting a connection fails") {
  std::unique_ptr<Served> served;
  {
    served = std::make_unique<Served>();
    // The accepting thread first allocates for the first connection.
    const FailingAllocation none(SIZE_MAX, FailingAllocation::kOne);
    served->ask(kRequests[0]);
  }
  for (const FailingAllocation::Mode mode : {FailingAllocation::kOne, FailingAllocation::kAllFrom}) {
    fail_every_allocation(*served, kRequests[0], mode);
  }
}

}  // namespace
}  // namespace infer
