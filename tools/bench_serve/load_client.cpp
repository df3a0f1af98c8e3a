#include "tools/bench_serve/load_client.h"

#include <httplib.h>

#include <nlohmann/json.hpp>

#include "ggml-like/clock.h"
#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "ggml-like/printable.h"
#include "tools/bench_serve/answer_stream.h"

namespace infer {
namespace {

constexpr size_t kMaxErrorBody = 65536;

[[noreturn]] void fail_url(const std::string& url, const char* expected) {
  throw Error(ErrorCode::kInvalidArgument,
              concat("--url: ", printable(url), " is not the address of a server. Write ", expected, "."));
}

}  // namespace

ServerAddress parse_server_address(const std::string& url) {
  ServerAddress server;
  const size_t scheme_end = url.find("://");
  const std::string scheme = url.substr(0, scheme_end == std::string::npos ? 0 : scheme_end);
  if (scheme != "http" && scheme != "https") fail_url(url, "http://HOST:PORT or https://HOST:PORT");
#ifndef CPPHTTPLIB_OPENSSL_SUPPORT
  if (scheme == "https") fail_url(url, "http:// (this program is built without TLS)");
#endif
  const size_t host = scheme_end + 3, path = url.find('/', host);
  server.origin = url.substr(0, path);
  const std::string authority = server.origin.substr(host);
  for (const char c : url) {
    if (c <= ' ' || c == '?' || c == '#' || c == '@' || static_cast<unsigned char>(c) >= 0x7f) {
      fail_url(url, "an address of letters, digits and punctuation, without user, query or fragment");
    }
  }
  const size_t bracket = authority.rfind(']'), colon = authority.rfind(':');
  const bool has_port = colon != std::string::npos && (bracket == std::string::npos || colon > bracket);
  if (authority.substr(0, has_port ? colon : authority.size()).empty()) fail_url(url, "a host");
  if (has_port) {
    const std::string port = authority.substr(colon + 1);
    const bool digits = !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string::npos;
    if (!digits || std::stoi(port) < 1 || std::stoi(port) > 65535) fail_url(url, "a port from 1 to 65535");
  }
  std::string base = path == std::string::npos ? "" : url.substr(path);
  while (base.ends_with('/')) base.pop_back();
  server.base = base.ends_with("/v1") ? base : base + "/v1";
  return server;
}

struct LoadClient::Impl {
  explicit Impl(const ServerAddress& e) : server(e), client(e.origin) {
    client.set_keep_alive(true);
    client.set_connection_timeout(10, 0);
    client.set_read_timeout(e.timeout_seconds, 0);
    client.set_write_timeout(e.timeout_seconds, 0);
    client.set_tcp_nodelay(true);
  }
  ServerAddress server;
  httplib::Client client;
};

namespace {

void set_error(Outcome& outcome, const std::string& kind, const std::string& message) {
  if (outcome.error.empty()) outcome.error = kind, outcome.message = message;
}

void take_answer(const AnswerStream& answer, double start, Outcome& outcome) {
  outcome.prompt_tokens = answer.prompt_tokens();
  outcome.cached_tokens = answer.cached_tokens();
  outcome.output_tokens = answer.output_tokens();
  outcome.drafted_tokens = answer.drafted_tokens();
  outcome.accepted_tokens = answer.accepted_tokens();
  const auto& times = answer.times();
  if (times.empty()) return;
  outcome.first_token = times.front() - start;
  for (size_t i = 1; i < times.size(); ++i) outcome.gaps.push_back(times[i] - times[i - 1]);
  if (outcome.output_tokens > 1) {
    outcome.per_output_token = (times.back() - times.front()) / static_cast<double>(outcome.output_tokens - 1);
  }
}

}  // namespace

LoadClient::LoadClient(const ServerAddress& server) : impl_(std::make_unique<Impl>(server)) {}
LoadClient::~LoadClient() = default;

Outcome LoadClient::run(const std::string& path, const nlohmann::json& body, const std::function<bool()>& stop) {
  Outcome outcome;
  AnswerStream answer;
  int status = 0;
  std::string error_body;
  httplib::Request request;
  request.method = "POST";
  request.path = impl_->server.base + path;
  request.headers = {{"Content-Type", "application/json"}, {"Accept", "text/event-stream"}};
  if (!impl_->server.api_key.empty()) request.headers.emplace("Authorization", "Bearer " + impl_->server.api_key);
  request.body = body.dump();
  request.response_handler = [&](const httplib::Response& response) {
    status = response.status;
    return true;
  };
  request.content_receiver = [&](const char* data, size_t size, uint64_t, uint64_t) {
    if (stop()) return false;
    if (status != 200) {
      error_body.append(data, std::min(size, kMaxErrorBody - std::min(kMaxErrorBody, error_body.size())));
      return true;
    }
    try {
      answer.feed({data, size}, steady_seconds());
    } catch (const Error& error) {
      set_error(outcome, "stream", error.what());
      return false;
    }
    return true;
  };

  const double start = steady_seconds();
  const httplib::Result result = impl_->client.send(request);
  const double end = steady_seconds();
  if (stop()) {
    set_error(outcome, "interrupted", "stopped by the user");
  } else if (!result) {
    const bool waited = end - start >= impl_->server.timeout_seconds;
    set_error(outcome,
              status == 200 && !waited ? "stream"
              : waited                 ? "timeout"
                                       : "connection",
              status == 200 ? expected_found("stream", "an answer to its end", "a broken connection")
                            : concat("No answer (", httplib::to_string(result.error()),
                                     "). Check that the server is running and that --url is right."));
  } else if (result->status != 200) {
    set_error(outcome, concat("status ", result->status), concat("[server] ", error_message(error_body)));
  } else if (!answer.done()) {
    set_error(outcome, "stream", expected_found("stream", "data: [DONE] at the end of the answer", "none"));
  } else if (answer.times().empty()) {
    set_error(outcome, "stream", expected_found("stream", "an answer with text", "none"));
  }
  outcome.total = end - start;
  take_answer(answer, start, outcome);
  return outcome;
}

}  // namespace infer
