// What the endpoints share: the model, the limits on work, the log and the counters. One object per server, used by
// many threads at once.
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

// A request on its way through an endpoint, and what the log will say about it. One thread at a time.
struct ApiCall {
  HttpRequest request;
  HttpResponse& response;
  const Endpoint& endpoint;
  Json log;
  Clock::time_point arrived;
  Admission::KeySlot key_slot;
  // The prefix of this request's cache salts: the number of its API key and a colon, or "". No salt that a client
  // sends can make a request of one key match those of another.
  std::string cache_scope;
  ByteBudget::Share input;  // while the body is parsed and its texts are tokenized
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
  bool draining() const { return draining_; }  // no further requests are taken
  // REQUIRES ready().
  const ServedModel& model() const { return *model_; }
  void set_model(std::unique_ptr<ServedModel> model);
  void drain() { draining_ = true; }
  // Requests under way end with 503 soon.
  void cancel_all() { stopping_ = true; }
  // Ends the model's engine. REQUIRES that no request is under way.
  void close_model() { model_.reset(); }

  // The request's body. Waits until there is room for it in the budget of bodies that are worked on at a time. Throws
  // ApiError: 400 for what is not a JSON object, and 499, 503 or 504 when the wait ends otherwise.
  Json body_of(ApiCall& call);
  // Frees the body and its share of the budget, once nothing refers to it any more.
  static void release_input(ApiCall& call);
  RequestContext request_context() const;
  // What ends a request that is under way: its client leaves, the server stops, its time is over.
  GenerationRun::Watch watch(const ApiCall& call) const;
  // Counts and logs a call that has been answered with `status`.
  void finish(ApiCall& call, int status);
  // `prefix` and 16 hexadecimal digits, unique in this run of the server.
  std::string new_id(const char* prefix);

 private:
  const ApiOptions options_;
  Metrics& metrics_;
  ServerLog& log_;
  Admission admission_;
  ByteBudget input_;  // bytes of bodies that are parsed and tokenized at a time
  RecentPrompts recent_prompts_;
  std::unique_ptr<ServedModel> model_;  // set once, before ready_
  std::atomic<bool> ready_ = false, draining_ = false, stopping_ = false;
  std::atomic<uint64_t> last_id_ = 0;
  const uint64_t instance_;  // differs between runs of the server
};

}  // namespace infer
