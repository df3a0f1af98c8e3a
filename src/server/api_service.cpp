#include "src/server/api_service.h"

#include <algorithm>
#include <cstdio>
#include <new>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "ggml-like/error.h"
#include "src/server/stats.h"

namespace infer {
namespace {

// Of bodies that are worked on at a time: parsing and tokenizing take many times the bytes of a body.
constexpr size_t kInputBytes = 16 << 20;
// From there on what a body took is worth giving back to the system.
constexpr size_t kLargeBody = 1 << 20;
constexpr std::chrono::milliseconds kLook{50};  // how soon a client that left, or the end, is noticed

void return_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

int64_t unix_time() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count() / 1000.0;
}

// What the API says of an error that is none of its own.
ApiError translate(const std::exception& error) {
  if (const auto* known = dynamic_cast<const ApiError*>(&error)) return *known;
  if (const auto* known = dynamic_cast<const Error*>(&error)) {
    const bool clients = known->code() == ErrorCode::kInvalidArgument || known->code() == ErrorCode::kUnsupported;
    return clients ? ApiError(400, "invalid_request_error", error.what()) : ApiError(500, "server_error", error.what());
  }
  if (dynamic_cast<const std::bad_alloc*>(&error)) {
    return ApiError(503, "server_error", "[memory] not enough memory for this request", "out_of_memory");
  }
  return ApiError(500, "server_error", error.what());
}

}  // namespace

ApiService::ApiService(const ApiOptions& options, Metrics& metrics, ServerLog& log)
    : options_(options),
      metrics_(metrics),
      log_(log),
      admission_(options.admission),
      input_(kInputBytes),
      instance_(random_seed()) {}

ApiService::~ApiService() = default;

void ApiService::set_model(std::unique_ptr<ServedModel> model) {
  model->created = unix_time();
  model_ = std::move(model);
  ready_ = true;
}

void ApiService::close_model() { model_.reset(); }

const std::vector<ApiService::Route>& ApiService::routes() {
  static const std::vector<Route> all = {
      {"GET", "/health", &ApiService::health, false, false},
      {"GET", "/version", &ApiService::version, true, false},
      {"GET", "/metrics", &ApiService::metrics, true, false},
      {"GET", "/stats", &ApiService::stats, true, true},
      {"GET", "/v1/models", &ApiService::models, true, true},
      {"POST", "/v1/chat/completions", &ApiService::chat_completions, true, true},
      {"POST", "/v1/completions", &ApiService::completions, true, true},
      {"POST", "/v1/embeddings", &ApiService::embeddings, true, true},
      {"POST", "/tokenize", &ApiService::tokenize, true, true},
      {"POST", "/detokenize", &ApiService::detokenize, true, true},
      {"POST", "/apply-template", &ApiService::apply_template, true, true},
  };
  return all;
}

std::vector<std::string> ApiService::post_paths() {
  std::vector<std::string> paths;
  for (const Route& route : routes()) {
    if (std::string_view(route.method) == "POST") paths.push_back(route.path);
  }
  return paths;
}

const ApiService::Route* ApiService::find_route(const std::string& method, const std::string& path) {
  // One model under /v1/models/, whatever its name.
  const bool is_model = path.starts_with("/v1/models/");
  for (const Route& route : routes()) {
    const bool same_method = method == route.method || (method == "HEAD" && std::string_view(route.method) == "GET");
    if (same_method && (path == route.path || (is_model && std::string_view(route.path) == "/v1/models"))) {
      return &route;
    }
  }
  return nullptr;
}

void ApiService::check_access(const HttpHead& head, const Route* route) {
  const std::string_view host = head.value("host");
  if (!host_allowed(host, options_.bound_host, options_.allowed_hosts)) {
    throw ApiError(403, "permission_error", "the Host header names none of this server's hosts (--allowed-host)",
                   "host_not_allowed");
  }
  if (const std::string* origin = head.find("origin");
      origin && !origin_allowed(*origin, host, options_.cors_origins)) {
    throw ApiError(403, "permission_error", "pages of this origin may not call this server (--cors-origin)",
                   "origin_not_allowed");
  }
  if (head.method == "OPTIONS") return;
  const bool needs_key = !route || route->needs_key;
  if (needs_key && !options_.keys.empty() && !find_api_key(options_.keys, head.value("authorization"))) {
    throw ApiError(401, "authentication_error", "a valid API key in the Authorization header: Bearer KEY",
                   "invalid_api_key");
  }
  if (!route || (!options_.serve_metrics && route->run == &ApiService::metrics)) {
    const auto same_path = [&](const Route& other) { return head.path == other.path; };
    const bool known = std::any_of(routes().begin(), routes().end(), same_path);
    throw known && !route ? ApiError(405, "invalid_request_error", "this route takes another method")
                          : ApiError(404, "invalid_request_error", "there is no such route", "not_found");
  }
  if (head.value("content-type").starts_with("multipart/")) {
    throw ApiError(415, "invalid_request_error", "a body of application/json, found a form");
  }
  if (route->needs_model && (!ready_ || draining_)) {
    ApiError error(503, "server_error", draining_ ? "the server is going down" : "the model is being loaded",
                   draining_ ? "stopping" : "loading");
    error.retry_after = 1;
    throw error;
  }
}

bool ApiService::admit(const HttpHead& head, const std::string& peer, HttpResponse& response) {
  try {
    check_access(head, find_route(head.method, head.path));
    if (head.method != "OPTIONS") return true;
    add_cors_headers(head, response);
    answer_preflight(head, response);
    return false;
  } catch (const ApiError& error) {
    add_cors_headers(head, response);
    send_error(error, response);
    metrics_.rejected.add(error.code().empty() ? std::to_string(error.status()) : error.code());
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
  metrics_.responses.add("204");
}

void ApiService::add_cors_headers(const HttpHead& head, HttpResponse& response) const {
  const std::string* origin = head.find("origin");
  if (!origin || options_.cors_origins.empty()) return;
  response.headers.emplace_back("Vary", head.method == "OPTIONS" ? "Origin, Access-Control-Request-Headers" : "Origin");
  if (origin_allowed(*origin, "", options_.cors_origins)) {
    response.headers.emplace_back("Access-Control-Allow-Origin", *origin);
    response.headers.emplace_back("Access-Control-Expose-Headers", "X-Request-Id, Retry-After");
  }
}

void ApiService::refused(const std::string& peer, const HttpHead* head, int status, const std::string& reason) {
  metrics_.responses.add(std::to_string(status));
  Json fields = {{"peer", peer}};
  if (head) fields.update({{"method", head->method}, {"path", head->path}});
  fields.update({{"status", status}, {"reason", reason}});
  log_.write(status == 0 ? LogLevel::kError : LogLevel::kInfo, "refused", fields);
}

void ApiService::send_error(const ApiError& error, HttpResponse& response) const {
  response.status = error.status();
  response.content_type = "application/json";
  response.body = json_text(error.to_json());
  response.stream = nullptr;
  if (error.retry_after > 0) response.headers.emplace_back("Retry-After", std::to_string(error.retry_after));
  if (error.status() == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
}

void ApiService::handle(HttpRequest request, HttpResponse& response) {
  const bool large = request.body.size() >= kLargeBody;
  const CallPtr call(new Call{std::move(request), response, {}, Clock::now(), {}, {}, {}});
  const HttpHead& head = call->request.head;
  const std::string id = new_id("req-");
  call->log = {{"id", id}, {"peer", call->request.peer}, {"method", head.method}, {"path", head.path}};
  add_cors_headers(head, response);
  response.headers.emplace_back("X-Request-Id", id);
  try {
    if (!options_.keys.empty()) {
      if (const auto key = find_api_key(options_.keys, head.value("authorization"))) {
        call->log["key"] = *key + 1;
        call->key_slot = admission_.enter_key(std::to_string(*key));
        if (options_.keys.size() > 1 && !options_.share_prefixes) call->cache_scope = concat(*key, ":");
      }
    }
    (this->*find_route(head.method, head.path)->run)(call);
    if (!response.stream) finish(*call, response.status);
  } catch (const std::exception& caught) {
    const ApiError error = translate(caught);
    send_error(error, response);
    if (error.status() == 429) metrics_.rejected.add(error.code());
    call->log["error"] = error.what();
    finish(*call, error.status());
  }
  release_input(*call);
  if (large) return_memory();
}

void ApiService::finish(Call& call, int status) {
  metrics_.responses.add(std::to_string(status));
  if (status == kClientGone || status == 504) ++metrics_.cancelled;
  call.log["status"] = status;
  call.log["ms"] = milliseconds_since(call.arrived);
  const bool quiet = call.request.head.path == "/health" || call.request.head.path == "/metrics";
  const LogLevel level = status == 500 ? LogLevel::kError : quiet ? LogLevel::kDebug : LogLevel::kInfo;
  log_.write(level, "request", call.log);
}

std::string ApiService::new_id(const char* prefix) {
  char digits[40];
  std::snprintf(digits, sizeof(digits), "%08llx%08llx", static_cast<unsigned long long>(instance_ & 0xFFFFFFFF),
                static_cast<unsigned long long>(++last_id_));
  return prefix + std::string(digits);
}

Json ApiService::body_of(Call& call) {
  const std::string& body = call.request.body;
  call.input = ByteBudget::Share(input_);
  while (!call.input.grow(body.size(), kLook)) {
    if (call.request.client_gone()) throw ApiError(kClientGone, "client_error", "the client closed the connection");
    if (stopping_) throw ApiError(503, "server_error", "the server stops", "stopping");
    if (Clock::now() >= call.arrived + options_.request_timeout) {
      throw ApiError(504, "server_error", "the time for a request is over", "timeout");
    }
  }
  JsonLimits limits{.depth = options_.limits.max_depth};
  limits.object_members = std::max(limits.object_members, options_.limits.max_logit_biases + 1);
  limits.members = std::max(limits.members, 2 * limits.object_members);
  return parse_json_object(body, limits);
}

void ApiService::release_input(Call& call) {
  std::string().swap(call.request.body);
  call.request.body_share.release();
  call.input.release();
}

RequestContext ApiService::context() const {
  const Tokenizer& tokenizer = model_->engine->tokenizer();
  return {options_.limits, options_.sampling, model_->engine->model().n_vocab(),
          [&tokenizer](std::string_view text) { return tokenizer.encode(text, false, false); }};
}

void ApiService::health(const CallPtr& call) {
  const bool serves = ready_ && !draining_;
  call->response.status = serves ? 200 : 503;
  call->response.body = json_text({{"status", serves ? "ok" : draining_ ? "stopping" : "loading"}});
}

void ApiService::version(const CallPtr& call) {
  Json body = {{"version", options_.version}};
  if (ready_) {
    body["model"] = model_->name;
    body["fingerprint"] = model_->fingerprint;
    body["quantization"] = model_->quantization;
    body["architecture"] = model_->engine->model().architecture();
    body["context"] = model_->engine->context();
  }
  body["flags"] = options_.settings;
  call->response.body = json_text(body);
}

void ApiService::metrics(const CallPtr& call) {
  call->response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  call->response.body = metrics_.text();
}

void ApiService::stats(const CallPtr& call) {
  const EngineThread& engine = *model_->engine;
  Json body = {{"model", model_->name}};
  body.update(stats_json(engine.placement(), engine.memory_use(), metrics_.gauges()));
  call->response.body = json_text(body);
}

Json ApiService::model_json() const {
  const Model& model = model_->engine->model();
  return {{"id", model_->name},
          {"object", "model"},
          {"created", model_->created},
          {"owned_by", "infer"},
          {"meta",
           {{"architecture", model.architecture()},
            {"quantization", model_->quantization},
            {"n_params", model.parameter_count()},
            {"size", model.weight_bytes()},
            {"n_vocab", model.n_vocab()},
            {"n_embd", model.n_embd()},
            {"n_ctx", model_->engine->context()},
            {"n_ctx_train", model.context_length()}}}};
}

void ApiService::models(const CallPtr& call) {
  const std::string& path = call->request.head.path;
  constexpr std::string_view kOne = "/v1/models/";
  if (path.starts_with(kOne)) {
    if (path.substr(kOne.size()) != model_->name) {
      throw ApiError(404, "invalid_request_error", "there is no such model", "model_not_found", "model");
    }
    call->response.body = json_text(model_json());
    return;
  }
  call->response.body = json_text({{"object", "list"}, {"data", Json::array({model_json()})}});
}

void ApiService::apply_template(const CallPtr& call) {
  const RenderedText prompt = render_prompt(*model_, parse_conversation(body_of(*call), context()));
  call->response.body = json_text({{"prompt", prompt.text}});
}

}  // namespace infer
