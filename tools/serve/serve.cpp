#include "tools/serve/serve.h"

#include <unistd.h>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "src/server/access.h"
#include "src/server/http_server.h"
#include "tools/chat_template_flag.h"
#include "tools/serve/serve_context.h"

namespace infer {
namespace {

// Limit on a step's logits, for prompts whose log-probabilities are requested.
constexpr uint64_t kLogitsBytes = 64 << 20;

// Receives SIGTERM and SIGINT synchronously instead of letting them end the process. Created before any other thread,
// which would otherwise receive them.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    signal(SIGPIPE, SIG_IGN);  // a disconnected client shows up as a failed write
  }
  void wait() const {
    while (sigwaitinfo(&set_, nullptr) < 0) {
    }
  }
  bool wait(std::chrono::milliseconds timeout) const {
    const timespec time = {timeout.count() / 1000, timeout.count() % 1000 * 1000000};
    return sigtimedwait(&set_, nullptr, &time) > 0;
  }

 private:
  sigset_t set_;
};

void check_serve_options(const ServeOptions& o) {
  if (o.http.tls_certificate.empty() != o.http.tls_key.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "--tls-cert and --tls-key go together. Give both.");
  }
  if (!is_loopback(o.http.host) && o.api.keys.empty() && !o.no_auth) {
    throw Error(ErrorCode::kInvalidArgument,
                concat("Anyone who can reach ", printable(o.http.host),
                       " could use the server. Set API keys with --api-key-file, --api-key or "
                       "$INFER_API_KEY, or allow it with --no-auth."));
  }
  if (o.no_auth && !o.api.keys.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "--no-auth conflicts with the API keys that are set. Leave out --no-auth, or --api-key-file, --api-key "
                "and $INFER_API_KEY.");
  }
}

std::unique_ptr<ServedModel> load_model(const ServeOptions& o, Metrics& metrics, ServerLog& log,
                                        std::atomic<bool>& failed) {
  auto served = std::make_unique<ServedModel>();
  std::shared_ptr<Model> model = load_model(o.model.open());
  if (!o.chat_template.empty()) {
    served->chat_template = template_by_name_or_file(o.chat_template);
  } else if (model->chat_template()) {
    served->chat_template = ChatTemplate::parse(*model->chat_template());
  } else {
    log.write(LogLevel::kInfo, "warning",
              {{"text", "The model has no chat template. Chats use chatml; --chat-template NAME selects another."}});
  }
  served->special_in_content = o.special_in_content;
  served->aliases = CLI::detail::split(o.alias, ',');
  served->name = served->aliases[0].empty() ? std::filesystem::path(o.model.model).stem().string() : served->aliases[0];
  served->fingerprint = model_fingerprint(model->file());
  served->quantization = model_quantization(model->file());

  EngineOptions engine = o.model.engine_options();
  engine.speculation = o.speculation.options();
  engine.embeddings = true;
  engine.isolate_errors = true;
  engine.note = [&](const std::string& line) { log.write(LogLevel::kInfo, "note", {{"text", line}}); };
  engine.step_tokens = std::max(engine.step_tokens, engine.max_sequences);
  engine.logits_bytes = kLogitsBytes;
  engine.opened = open_devices(engine);
  const ServeContext chosen = choose_serve_context(model, engine);
  engine.context = chosen.context;
  engine.cache_tokens = chosen.cache_tokens;
  log.write(LogLevel::kInfo, "context",
            {{"tokens", chosen.context}, {"kv_tokens", chosen.cache_tokens}, {"limited_by", chosen.limit}});
  // The queue is bounded by the admitted requests; each may have the maximum number of choices.
  engine.max_waiting = static_cast<int>((o.api.admission.running + o.api.admission.waiting) *
                                        static_cast<int64_t>(o.api.limits.max_choices));
  served->engine = std::make_unique<EngineThread>(std::make_unique<Engine>(std::move(model), engine), metrics,
                                                  [&](const std::string& reason) {
                                                    log.write(LogLevel::kError, "engine_failed", {{"reason", reason}});
                                                    if (!failed.exchange(true)) kill(getpid(), SIGTERM);
                                                  });
  served->traits = served->chat_template.traits();
  served->chat_format =
      std::make_shared<const ChatFormat>(find_chat_format(served->chat_template, served->engine->tokenizer()));
  const EngineThread& thread = *served->engine;
  served->grammars = std::make_unique<AnswerGrammarCache>(
      thread.tokenizer(), static_cast<size_t>(thread.model().n_vocab()), served->chat_format);
  return served;
}

// Lets requests in progress finish until the timeout or another signal. False if some did not end even when cancelled.
bool drain(HttpServer& http, ApiService& service, const StopSignals& signals, std::chrono::seconds timeout) {
  service.api().drain();
  http.drain();
  const auto until = Clock::now() + timeout;
  while (!http.wait_until_closed(std::chrono::milliseconds(20))) {
    if (signals.wait(std::chrono::milliseconds(20)) || Clock::now() >= until) break;
  }
  // Ends the remaining requests with an error response.
  service.api().cancel_all();
  http.wait_until_closed(std::chrono::seconds(2));
  return http.stop(std::chrono::seconds(3));
}

}  // namespace

int run_serve(ServeOptions o) {
  o.api.sampling.validate();
  if (!o.api_key_file.empty()) o.api.keys = read_api_keys(o.api_key_file);
  o.api.keys.insert(o.api.keys.end(), o.api_keys.begin(), o.api_keys.end());
  o.api.template_variables = o.reasoning.variables(o.api.template_variables);
  o.api.reasoning_budget = o.reasoning.limit();
  if (const char* keys = std::getenv("INFER_API_KEY")) {
    for (std::string& key : split_api_keys(keys)) o.api.keys.push_back(std::move(key));
  }
  check_serve_options(o);
  o.model.model = find_model_file(o.model.model, o.named_model, o.model.engine_options());
  // Refuses a missing or damaged model before the server starts listening.
  GgufFile::open(o.model.model, {.map_data = false});
  o.api.bound_host = o.http.host;
  o.api.admission.running = o.model.engine.max_sequences;
  o.api.version = INFER_VERSION;
  o.http.post_paths = ApiService::post_paths();

  const StopSignals signals;
  const LogLevel level = o.log_level == "error"  ? LogLevel::kError
                         : o.log_level == "info" ? LogLevel::kInfo
                                                 : LogLevel::kDebug;
  ServerLog log(level, o.log_format == "json");
  o.model.report_ignored([&log](const std::string& line) { log.write(LogLevel::kInfo, "note", {{"text", line}}); });
  Metrics metrics;
  std::atomic<bool> failed = false;
  ApiService service(o.api, metrics, log);
  HttpServer http(o.http, service);
  const std::string scheme = o.http.tls_certificate.empty() ? "http" : "https";
  const std::string host = o.http.host.find(':') == std::string::npos ? o.http.host : "[" + o.http.host + "]";
  log.write(LogLevel::kInfo, "listening", {{"url", concat(scheme, "://", host, ":", http.port())}});
  const Clock::time_point before = Clock::now();
  auto model = load_model(o, metrics, log, failed);
  log.write(LogLevel::kInfo, "ready",
            {{"model", model->name},
             {"context", model->engine->context()},
             {"kv_tokens", model->engine->cache_tokens()},
             {"seconds", std::chrono::duration<double>(Clock::now() - before).count()}});
  service.api().set_model(std::move(model));

  signals.wait();
  log.write(LogLevel::kInfo, "stopping", {{"timeout", o.drain_timeout.count()}});
  if (!drain(http, service, signals, o.drain_timeout)) {
    // Their threads use objects that would be destroyed by a normal exit.
    log.write(LogLevel::kError, "stopped", {{"reason", "requests in progress did not end in time and were abandoned"}});
    std::_Exit(1);
  }
  service.api().close_model();
  log.write(LogLevel::kInfo, "stopped", Json::object());
  return failed ? 1 : 0;
}

}  // namespace infer
