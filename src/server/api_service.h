// The routes of the API: who may call them, what they answer, and what is logged and counted of every request. Called
// by the HTTP server on many threads at once.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/server/access.h"
#include "src/server/admission.h"
#include "src/server/generation_run.h"
#include "src/server/http_server.h"
#include "src/server/metrics.h"
#include "src/server/recent_prompts.h"
#include "src/server/server_log.h"

namespace infer {

struct ApiOptions {
  std::vector<std::string> keys;  // empty: whoever reaches the server may use it
  std::string bound_host = "127.0.0.1";
  std::vector<std::string> allowed_hosts, cors_origins;
  AdmissionLimits admission;
  bool share_prefixes = false;  // requests of different keys share cached prefixes
  RequestLimits limits;
  SamplingParams sampling;
  std::chrono::seconds request_timeout{600};
  bool serve_metrics = true;
  Pooling pooling = Pooling::kLast;
  Json settings;        // what /version says about the flags
  std::string version;  // of the program
};

class ApiService : public HttpService {
 public:
  ApiService(const ApiOptions& options, Metrics& metrics, ServerLog& log);
  ~ApiService() override;

  // Until then everything but /health and /version is 503.
  void set_model(std::unique_ptr<ServedModel> model);
  // Further requests are 503.
  void drain() { draining_ = true; }
  // What is under way ends with 503 soon.
  void cancel_all() { stopping_ = true; }
  // The model's engine ends. REQUIRES that no request is under way.
  void close_model();

  // Paths that take a body.
  static std::vector<std::string> post_paths();

  bool admit(const HttpHead& head, const std::string& peer, HttpResponse& response) override;
  void handle(HttpRequest request, HttpResponse& response) override;
  void refused(const std::string& peer, const HttpHead* head, int status, const std::string& reason) override;

 private:
  // A request on its way through a route, with what the log will say of it.
  struct Call {
    HttpRequest request;
    HttpResponse& response;
    Json log;
    Clock::time_point arrived;
    Admission::KeySlot key_slot;
    // What cache salts of this request begin with. Those of another key, or of none, never begin so: the number of the
    // key ends at the colon, whatever the salt that follows.
    std::string cache_scope;
    ByteBudget::Share input;  // while the body is being parsed and its texts are tokenized
  };
  using CallPtr = std::shared_ptr<Call>;
  struct Route {
    const char* method;
    const char* path;
    void (ApiService::*run)(const CallPtr& call);
    bool needs_key, needs_model;
  };
  static const std::vector<Route>& routes();
  static const Route* find_route(const std::string& method, const std::string& path);

  void check_access(const HttpHead& head, const Route* route);
  void answer_preflight(const HttpHead& head, HttpResponse& response);
  void add_cors_headers(const HttpHead& head, HttpResponse& response) const;
  void finish(Call& call, int status);
  void send_error(const ApiError& error, HttpResponse& response) const;

  void health(const CallPtr& call);
  void version(const CallPtr& call);
  void metrics(const CallPtr& call);
  void stats(const CallPtr& call);
  void models(const CallPtr& call);
  void apply_template(const CallPtr& call);
  void chat_completions(const CallPtr& call);
  void completions(const CallPtr& call);
  void embeddings(const CallPtr& call);

  // api_tokenize.cpp
  void tokenize(const CallPtr& call);
  void detokenize(const CallPtr& call);
  // Checks that a prompt's text is not longer than a context of the longest tokens before it is tokenized. `param`
  // names the member of the request that holds it.
  void check_length(std::string_view text, const char* param) const;

  // api_generate.cpp
  struct Answering;
  // 400 unless a prompt of so many tokens fits with `room` tokens of its answer; `param` is the member it came in.
  void check_tokens(size_t n_prompt, int64_t room, const char* param) const;
  std::vector<std::vector<TokenId>> encode_inputs(const std::vector<Prompt>& inputs) const;
  std::unique_ptr<Generation> make_generation(std::vector<TokenId> prompt, const GenerationParams& params,
                                              const char* param, const Call& call);
  void answer(const CallPtr& call, const std::shared_ptr<Answering>& answering);
  void send_whole(Call& call, Answering& answering);
  void stream(Call& call, Answering& answering, const HttpResponse::Write& write);
  GenerationRun::Watch watch(const Call& call) const;
  void log_answers(Call& call, const Answering& answering) const;

  // Waits until the body may take part in the work that bodies may cause at a time.
  Json body_of(Call& call);
  // The body and what was made of it are no longer needed.
  static void release_input(Call& call);
  Json model_json() const;
  RequestContext context() const;
  std::string new_id(const char* prefix);

  const ApiOptions options_;
  Metrics& metrics_;
  ServerLog& log_;
  Admission admission_;
  ByteBudget input_;  // bytes of bodies that are parsed and tokenized at a time
  RecentPrompts recent_prompts_;
  std::unique_ptr<ServedModel> model_;  // set once, before ready_
  std::atomic<bool> ready_ = false, draining_ = false, stopping_ = false;
  std::atomic<uint64_t> last_id_ = 0;
  const uint64_t instance_;  // tells ids of one run of the server from those of another
};

}  // namespace infer
