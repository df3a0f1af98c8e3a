// Shared by the endpoints: the model, the limits, the log and the metrics. One object per server, used by many threads
// at once.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "src/server/admission.h"
#include "src/server/api_options.h"
#include "src/server/endpoint.h"
#include "src/server/generation_run.h"
#include "src/server/http_service.h"
#include "src/server/metrics.h"
#include "src/server/recent_prompts.h"
#include "src/server/served_model.h"
#include "src/server/server_log.h"

namespace infer {

// A request being handled by an endpoint, and its log entry. One thread at a time.
struct ApiCall {
  HttpRequest request;
  HttpResponse& response;
  const Endpoint& endpoint;
  Json log;
  Clock::time_point arrived;
  Admission::KeySlot key_slot;
  // Prefix of this request's cache salts: the number of its API key and a colon, or "". Whatever salt a client sends,
  // requests with different keys never match.
  std::string cache_scope;
  ByteBudget::Share input;  // held while the body is parsed and its texts are tokenized
};
using CallPtr = std::shared_ptr<ApiCall>;

class Api {
 public:
  Api(const ApiOptions& options, Metrics& metrics, ServerLog& log);
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  const ApiOptions& options() const { return options_; }
  Metrics& metrics() { return metrics_; }
  ServerLog& log() { return log_; }
  Admission& admission() { return admission_; }
  RecentPrompts& recent_prompts() { return recent_prompts_; }

  bool ready() const { return ready_; }        // the model is loaded
  bool draining() const { return draining_; }  // no more requests are accepted
  // REQUIRES: ready().
  const ServedModel& model() const { return *model_; }
  void set_model(std::unique_ptr<ServedModel> model);
  void drain() { draining_ = true; }
  // Makes requests in progress end with 503 soon.
  void cancel_all() { stopping_ = true; }
  // Destroys the model's engine. REQUIRES: no request is in progress.
  void close_model() { model_.reset(); }

  // Parses the request's body, after waiting until it fits the budget for bodies being processed. Throws ApiError: 400
  // if it is not a JSON object; 499, 503 or 504 if the wait is cut short.
  Json body_of(ApiCall& call);
  // Frees the body and its share of the budget, once nothing refers to it.
  static void release_input(ApiCall& call);
  RequestContext request_context() const;
  // The conditions that end a request in progress: its client disconnects, the server stops, or it times out.
  GenerationRun::Watch watch(const ApiCall& call) const;
  // Counts and logs a call that was answered with `status`.
  void finish(ApiCall& call, int status);
  // `prefix` and 16 hexadecimal digits, unique within this server run.
  std::string new_id(const char* prefix);

 private:
  const ApiOptions options_;
  Metrics& metrics_;
  ServerLog& log_;
  Admission admission_;
  ByteBudget input_;  // bytes of bodies being parsed and tokenized
  RecentPrompts recent_prompts_;
  std::unique_ptr<ServedModel> model_;  // set once, before ready_
  std::atomic<bool> ready_ = false, draining_ = false, stopping_ = false;
  std::atomic<uint64_t> last_id_ = 0;
  const uint64_t instance_;  // differs between runs of the server
};

}  // namespace infer
