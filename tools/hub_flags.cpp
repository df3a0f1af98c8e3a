#include "tools/hub_flags.h"

#include <signal.h>

#include <cstdio>

#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "src/server/served_model.h"
#include "tools/arguments.h"
#include "tools/interrupt.h"
#include "tools/pull_report.h"

namespace infer {
namespace {

// Ignores a signal during its lifetime.
class IgnoredSignal {
 public:
  explicit IgnoredSignal(int number) : number_(number) {
    struct sigaction action = {};
    action.sa_handler = SIG_IGN;
    sigaction(number_, &action, &before_);
  }
  ~IgnoredSignal() { sigaction(number_, &before_, nullptr); }
  IgnoredSignal(const IgnoredSignal&) = delete;
  IgnoredSignal& operator=(const IgnoredSignal&) = delete;

 private:
  const int number_;
  struct sigaction before_ = {};
};

std::string quantization_of_file(const std::filesystem::path& path) {
  try {
    return model_quantization(*GgufFile::open(path, {.map_data = false}));
  } catch (const Error&) {  // a damaged file, which the first run reports
    return "";
  }
}

}  // namespace

void add_token_flags(CLI::App& app, HubFlags& flags) {
  app.add_option(flag_names("-hft,--hf-token"), flags.token,
                 "Hugging Face token for private models (default: $HF_TOKEN, or the file that huggingface-cli login "
                 "writes)")
      ->check(not_empty())
      ->type_name("TOKEN");
  app.add_flag("--offline", flags.offline, "Use only what is on this machine (also HF_HUB_OFFLINE=1)");
}

void add_download_flags(CLI::App& app, HubFlags& flags) {
  app.add_option("--connections", flags.connections, "Connections per file")
      ->check(whole_number(1, 64))
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--retries", flags.retries, "Attempts without progress before giving up, after the first")
      ->check(whole_number(0, 1000))
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--timeout", flags.timeout, "Seconds without data before a connection counts as broken")
      ->check(whole_number(1, 3600))
      ->capture_default_str()
      ->type_name("S");
}

HubOptions hub_options_of(const HubFlags& flags) {
  HubOptions options = hub_options();
  if (!flags.token.empty()) options.hugging_face.token = flags.token;
  options.offline = options.offline || flags.offline;
  options.download.connections = flags.connections;
  options.download.fetch.retries = flags.retries;
  options.download.fetch.http.stall_seconds = flags.timeout;
  options.download.fetch.http.connect_seconds = std::min(flags.timeout, options.download.fetch.http.connect_seconds);
  options.quantization = quantization_of_file;
  return options;
}

ModelName require_model_name(const std::string& text) {
  if (std::optional<ModelName> name = parse_model_name(text)) return *name;
  throw Error(
      ErrorCode::kInvalidArgument,
      concat(printable(text, 200),
             " is not the name of a model. Write ORG/REPO:QUANT (Hugging Face), NAME:TAG (Ollama's library), or the "
             "URL of a GGUF file."));
}

void with_hub(const HubFlags& flags, const std::function<void(Hub& hub)>& work) {
  const IgnoredSignal broken_pipe(SIGPIPE), large_file(SIGXFSZ);
  const InterruptGuard interrupt;
  PullReport report;
  HubEvents events;
  events.cancelled = [&] { return interrupt.interrupted(); };
  events.note = [&](const std::string& line) { report.note(line); };
  events.progress = [&](const std::string& file, uint64_t done, uint64_t total) { report.progress(file, done, total); };
  Hub hub(hub_options_of(flags), events);
  try {
    work(hub);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCancelled) throw;
    throw Error(ErrorCode::kCancelled, "Stopped. The same command continues where it was.");
  }
}

}  // namespace infer
