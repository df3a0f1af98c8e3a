#include "src/server/api_service.h"

#include <algorithm>
#include <new>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "ggml-like/error.h"
#include "src/server/access.h"
#include "src/server/json_object.h"
#include "src/server/responses.h"

namespace infer {
namespace {

// After a request with a body of this size or more, its memory is returned to the system.
constexpr size_t kLargeBody = 1 << 20;

void return_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

// The client's error for an exception that is not an ApiError.
ApiError translate(const std::exception& error) {
  if (const auto* known = dynamic_cast<const ApiError*>(&error)) return *known;
  if (const auto* known = dynamic_cast<const Error*>(&error)) {
    const bool clients = known->code() == ErrorCode::kInvalidArgument || known->code() == ErrorCode::kUnsupported;
    return clients ? ApiError(400, "invalid_request_error", error.what()) : ApiError(500, "server_error", error.what());
  }
  if (dynamic_cast<const std::bad_alloc*>(&error)) {
    return ApiError(503, "server_error",
                    "The server has too little memory for this request. Try again later, or send less.",
                    "out_of_memory");
  }
  return ApiError(500, "server_error", error.what());
}

// The endpoint for a request; null if there is none.
const Endpoint* find_endpoint(const std::string& method, const std::string& path, const ApiOptions& options) {
  for (const Endpoint& endpoint : endpoints()) {
    const bool same_method =
        method == endpoint.method || (method == "HEAD" && std::string_view(endpoint.method) == "GET");
    if (same_method && endpoint.takes(path) && (!endpoint.enabled || endpoint.enabled(options))) return &endpoint;
  }
  return nullptr;
}

bool is_known(const std::string& path, const ApiOptions& options) {
  const auto all = endpoints();
  return std::any_of(all.begin(), all.end(), [&](const Endpoint& endpoint) {
    return endpoint.takes(path) && (!endpoint.enabled || endpoint.enabled(options));
  });
}

}  // namespace

std::vector<std::string> ApiService::post_paths() {
  std::vector<std::string> paths;
  for (const Endpoint& endpoint : endpoints()) {
    if (std::string_view(endpoint.method) == "POST") paths.emplace_back(endpoint.path);
  }
  return paths;
}

void ApiService::check_access(const HttpHead& head) const {
  const ApiOptions& options = api_.options();
  const std::string_view host = head.value("host");
  if (!host_allowed(host, options.bound_host, options.allowed_hosts)) {
    throw ApiError(
        403, "permission_error",
        "The Host header does not name this server. To allow a name, start the server with --allowed-host NAME.",
        "host_not_allowed");
  }
  if (const std::string* origin = head.find("origin"); origin && !origin_allowed(*origin, host, options.cors_origins)) {
    throw ApiError(
        403, "permission_error",
        "Pages from this origin may not call this server. To allow them, start the server with --cors-origin ORIGIN.",
        "origin_not_allowed");
  }
  if (head.method == "OPTIONS") return;
  const Endpoint* endpoint = find_endpoint(head.method, head.path, options);
  const bool needs_key = !endpoint || endpoint->needs_key;
  if (needs_key && !options.keys.empty() && !find_api_key(options.keys, head.value("authorization"))) {
    throw ApiError(401, "authentication_error",
                   "The API key is missing or wrong. Send the header Authorization: Bearer KEY.", "invalid_api_key");
  }
  if (!endpoint) {
    throw is_known(head.path, options)
        ? ApiError(
              405, "invalid_request_error",
              concat("This route does not accept ", head.method.substr(0, 20), ". See docs/serve.md for its method."))
        : ApiError(404, "invalid_request_error", "There is no such route. See docs/serve.md for the list.",
                   "not_found");
  }
  if (head.value("content-type").starts_with("multipart/")) {
    throw ApiError(415, "invalid_request_error", "The body is a form. Send JSON with Content-Type: application/json.");
  }
  if (endpoint->needs_model && (!api_.ready() || api_.draining())) {
    ApiError error(503, "server_error",
                   api_.draining() ? "The server is shutting down. Try again later."
                                   : "The model is still loading. Try again soon.",
                   api_.draining() ? "stopping" : "loading");
    error.retry_after = 1;
    throw error;
  }
}

bool ApiService::admit(const HttpHead& head, const std::string& peer, HttpResponse& response) {
  try {
    check_access(head);
    if (head.method != "OPTIONS") return true;
    add_cors_headers(head, response);
    answer_preflight(head, response);
    return false;
  } catch (const ApiError& error) {
    add_cors_headers(head, response);
    send_error(error, response);
    api_.metrics().rejected.add(error.code().empty() ? std::to_string(error.status()) : error.code());
    refused(peer, &head, error.status(), error.what());
    return false;
  }
}

void ApiService::answer_preflight(const HttpHead& head, HttpResponse& response) {
  response.status = 204;
  response.content_type = "text/plain";
  response.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
  response.headers.emplace_back("Access-Control-Allow-Headers",
                                allowed_request_headers(head.value("access-control-request-headers")));
  response.headers.emplace_back("Access-Control-Max-Age", "600");
  api_.metrics().responses.add("204");
}

void ApiService::add_cors_headers(const HttpHead& head, HttpResponse& response) const {
  const std::string* origin = head.find("origin");
  if (!origin || api_.options().cors_origins.empty()) return;
  response.headers.emplace_back("Vary", head.method == "OPTIONS" ? "Origin, Access-Control-Request-Headers" : "Origin");
  if (origin_allowed(*origin, "", api_.options().cors_origins)) {
    response.headers.emplace_back("Access-Control-Allow-Origin", *origin);
    response.headers.emplace_back("Access-Control-Expose-Headers", "X-Request-Id, Retry-After");
  }
}

void ApiService::refused(const std::string& peer, const HttpHead* head, int status, const std::string& reason) {
  api_.metrics().responses.add(std::to_string(status));
  Json fields = json_object("peer", peer);
  if (head) fields.update(json_object("method", head->method, "path", head->path));
  fields.update(json_object("status", status, "reason", reason));
  api_.log().write(status == 0 ? LogLevel::kError : LogLevel::kInfo, "refused", fields);
}

void ApiService::send_error(const ApiError& error, HttpResponse& response) {
  response.status = error.status();
  response.content_type = "application/json";
  response.body = json_text(error.to_json());
  response.stream = nullptr;
  if (error.retry_after > 0) response.headers.emplace_back("Retry-After", std::to_string(error.retry_after));
  if (error.status() == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
}

void ApiService::handle(HttpRequest request, HttpResponse& response) {
  const bool large = request.body.size() >= kLargeBody;
  const Endpoint& endpoint = *find_endpoint(request.head.method, request.head.path, api_.options());
  const CallPtr call(new ApiCall{std::move(request), response, endpoint, {}, Clock::now(), {}, {}, {}});
  const HttpHead& head = call->request.head;
  const std::string id = api_.new_id("req-");
  call->log = json_object("id", id, "peer", call->request.peer, "method", head.method, "path", head.path);
  add_cors_headers(head, response);
  response.headers.emplace_back("X-Request-Id", id);
  try {
    if (!api_.options().keys.empty()) {
      if (const auto key = find_api_key(api_.options().keys, head.value("authorization"))) {
        call->log["key"] = *key + 1;
        call->key_slot = api_.admission().enter_key(std::to_string(*key));
        if (api_.options().keys.size() > 1 && !api_.options().share_prefixes) call->cache_scope = concat(*key, ":");
      }
    }
    endpoint.run(api_, call);
    if (!response.stream) api_.finish(*call, response.status);
  } catch (const std::exception& caught) {
    const ApiError error = translate(caught);
    send_error(error, response);
    if (error.status() == 429) api_.metrics().rejected.add(error.code());
    call->log["error"] = error.what();
    api_.finish(*call, error.status());
  }
  Api::release_input(*call);
  if (large) return_memory();
}

}  // namespace infer
