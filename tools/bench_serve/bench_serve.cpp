#include "tools/bench_serve/bench_serve.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "src/text/ordered_json.h"
#include "tools/arguments.h"
#include "tools/bench_serve/load.h"
#include "tools/bench_serve/plot.h"
#include "tools/input.h"
#include "tools/interrupt.h"
#include "tools/output_file.h"

namespace infer {
namespace {

using nlohmann::ordered_json;

struct BenchServeOptions {
  std::string url;
  std::vector<int> concurrency = {1, 4, 16, 32};
  std::string mix = "chat";  // prefill, decode, chat
  Workload workload;         // without the mix and the route
  std::string api = "chat";  // chat or completions
  std::string prompts;       // file; "": made-up texts
  std::string api_key_file;  // "": $INFER_API_KEY, if set
  std::string plot;          // SVG file; "": none
  int requests = 0;          // per level; 0: four per client, at least 16
  int timeout_seconds = 300;
  bool compare_drafts = false;
  bool json = false;
};

Mix mix_of(const std::string& name) {
  return name == "prefill" ? Mix::kPrefill : name == "decode" ? Mix::kDecode : Mix::kChat;
}

// The first line of the file, or the environment variable.
std::string read_api_key(const std::string& path) {
  if (path.empty()) {
    const char* key = std::getenv("INFER_API_KEY");
    return key ? key : "";
  }
  std::ifstream file(path);
  std::string key;
  if (!std::getline(file, key) || key.empty()) {
    throw Error(ErrorCode::kIo, concat("--api-key-file: there is no key in ", printable(path),
                                       ". Name a file whose first line is the key."));
  }
  if (key.ends_with('\r')) key.pop_back();
  return key;
}

std::vector<std::string> read_prompts(const std::string& path) {
  std::vector<std::string> prompts;
  std::istringstream lines(read_text_file(path));
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) prompts.push_back(line);
  }
  if (prompts.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                concat("--prompts: there is no prompt in ", printable(path), ". Write one per line."));
  }
  return prompts;
}

// "with drafts: 1,200 drafted, 81 % accepted"
std::string drafts_text(const LevelResult& level) {
  if (*level.max_drafts == 0) return "without drafts";
  if (level.drafted_tokens == 0) return "with drafts: none were made";
  char text[80];
  std::snprintf(text, sizeof(text), " drafted, %.0f %% accepted",
                100.0 * static_cast<double>(level.accepted_tokens) / static_cast<double>(level.drafted_tokens));
  return "with drafts: " + grouped(static_cast<uint64_t>(level.drafted_tokens)) + text;
}

void print_level(const LevelResult& level) {
  const auto ms = [](double seconds) { return 1000 * seconds; };
  std::printf("%11d %8d %6d %9.2f %9.1f  %7.0f %7.0f %7.0f  %7.1f %7.1f %7.1f  %7.1f\n", level.concurrency,
              level.requests, level.failed(), level.per_second(level.answered),
              level.per_second(static_cast<double>(level.output_tokens)), ms(level.first_token.p50),
              ms(level.first_token.p95), ms(level.first_token.p99), ms(level.per_output_token.p50),
              ms(level.per_output_token.p95), ms(level.per_output_token.p99), ms(level.gap.p99));
  if (level.max_drafts) std::printf("%11s %s\n", "", drafts_text(level).c_str());
  for (const auto& [kind, error] : level.errors) {
    std::printf("%11s %d of %s: %s\n", "", error.count, kind.c_str(), printable(error.message).c_str());
  }
}

ordered_json latency_json(const Latency& latency) {
  return {{"mean", latency.mean}, {"p50", latency.p50}, {"p95", latency.p95}, {"p99", latency.p99}};
}

ordered_json level_json(const LevelResult& level) {
  ordered_json errors = ordered_json::object();
  for (const auto& [kind, error] : level.errors) errors[kind] = {{"count", error.count}, {"message", error.message}};
  ordered_json json = {{"concurrency", level.concurrency},
                       {"requests", level.requests},
                       {"answered", level.answered},
                       {"errors", errors},
                       {"seconds", level.seconds},
                       {"requests_per_second", level.per_second(level.answered)},
                       {"output_tokens_per_second", level.per_second(static_cast<double>(level.output_tokens))},
                       {"prompt_tokens_per_second", level.per_second(static_cast<double>(level.prompt_tokens))},
                       {"prompt_tokens", level.prompt_tokens},
                       {"cached_tokens", level.cached_tokens},
                       {"output_tokens", level.output_tokens},
                       {"time_to_first_token", latency_json(level.first_token)},
                       {"time_per_output_token", latency_json(level.per_output_token)},
                       {"gap", latency_json(level.gap)},
                       {"total", latency_json(level.total)}};
  if (level.max_drafts) {
    json["drafts"] = *level.max_drafts > 0;
    json["drafted_tokens"] = level.drafted_tokens;
    json["accepted_tokens"] = level.accepted_tokens;
  }
  return json;
}

int run_bench_serve(const BenchServeOptions& options) {
  if (!options.plot.empty()) check_output_file(options.plot, "with --plot");
  ServerAddress server = parse_server_address(options.url);
  server.api_key = read_api_key(options.api_key_file);
  server.timeout_seconds = options.timeout_seconds;
  Workload workload = options.workload;
  workload.mix = mix_of(options.mix);
  workload.chat_endpoint = options.api == "chat";
  if (!options.prompts.empty()) workload.prompts = read_prompts(options.prompts);
  std::vector<Workload> compared = {workload};
  if (options.compare_drafts) {
    compared = {workload, workload};
    compared[0].max_drafts = 0;
    compared[1].max_drafts = INT32_MAX;
  }
  const InterruptGuard guard;
  const auto stop = [&] { return guard.interrupted(); };

  // One warm-up request, not counted: it wakes the server up and reports an unusable server in one line.
  uint64_t next = 0;
  const Outcome first = LoadClient(server).run(workload.path(), compared.back().body(next++), stop);
  if (stop()) return kInterruptedCode;
  if (!first.error.empty()) {
    throw Error(ErrorCode::kIo, concat("[bench-serve] ", printable(server.url()), ": ", first.message));
  }
  const std::string title = concat(printable(server.url()), ", ", options.mix, " mix",
                                   workload.model.empty() ? "" : ", model ", printable(workload.model));
  if (!options.json) {
    std::printf("%s\n\n%53s  %23s  %23s  %7s\n%11s %8s %6s %9s %9s  %7s %7s %7s  %7s %7s %7s  %7s\n", title.c_str(), "",
                "first token, ms", "per output token, ms", "gap, ms", "concurrency", "requests", "errors", "answers/s",
                "tokens/s", "p50", "p95", "p99", "p50", "p95", "p99", "p99");
  }
  std::vector<LevelResult> levels;
  for (const int concurrency : options.concurrency) {
    const int requests = options.requests > 0 ? options.requests : std::max(16, 4 * concurrency);
    for (Workload& one : compared) {
      // Each level runs the same requests twice; the salt keeps the second run from finding the first one's prompts
      // cached.
      if (options.compare_drafts) one.cache_salt = concat("bench-", levels.size());
      levels.push_back(run_level(server, one, concurrency, requests, next, stop));
      if (stop()) return kInterruptedCode;
      if (!options.json) print_level(levels.back());
      std::fflush(stdout);
    }
    next += static_cast<uint64_t>(requests);
  }
  if (!options.plot.empty()) {
    AtomicFile file(options.plot);
    file.write(latency_plot(title, levels));
    file.finish();
  }
  if (options.json) {
    ordered_json results = ordered_json::array();
    for (const LevelResult& level : levels) results.push_back(level_json(level));
    const ordered_json document = {{"url", server.url()}, {"mix", options.mix}, {"results", results}};
    std::printf("%s\n", document.dump(-1, ' ', false, ordered_json::error_handler_t::replace).c_str());
  }
  const bool all_answered_some = std::all_of(levels.begin(), levels.end(), [](auto& l) { return l.answered > 0; });
  return all_answered_some ? 0 : 1;
}

}  // namespace

std::function<int()> define_bench_serve(CLI::App& app) {
  const auto o = std::make_shared<BenchServeOptions>();
  app.add_option("--url", o->url, "Endpoint: http://HOST:PORT, https://HOST:PORT, with a path if needed")
      ->required()
      ->type_name("URL");
  app.add_option("--concurrency", o->concurrency,
                 "Numbers of concurrent clients, measured in turn (default: 1,4,16,32)")
      ->delimiter(',')
      ->take_all()
      ->check(whole_number(1, 4096))
      ->type_name("N,...");
  app.add_option("--mix", o->mix, "prefill (long prompts), decode (long answers) or chat (default: chat)")
      ->check(one_of({"prefill", "decode", "chat"}))
      ->type_name("MIX");
  const auto number = [&](const char* name, int& value, const char* text, int most) {
    app.add_option(name, value, text)->check(whole_number(1, most))->type_name("N");
  };
  number("--requests", o->requests, "Requests per level (default: four per client, at least 16)", 1 << 20);
  number("--prompt-words", o->workload.prompt_words, "Length of prompts in words (default: depends on the mix)",
         1 << 20);
  number("--max-tokens", o->workload.max_tokens, "Length of answers in tokens (default: depends on the mix)", 1 << 20);
  number("--timeout", o->timeout_seconds, "Seconds to wait for data from the server (default: 300)", 86400);
  app.add_option("--prompts", o->prompts, "File with prompts to send in turn, one per line (default: made-up texts)")
      ->check(not_empty())
      ->type_name("FILE");
  app.add_option("--model", o->workload.model, "Model name to send (default: none)")->type_name("NAME");
  app.add_option("--api", o->api, "Route: chat or completions (default: chat)")
      ->check(one_of({"chat", "completions"}))
      ->type_name("NAME");
  app.add_option("--api-key-file", o->api_key_file, "File with the API key (default: $INFER_API_KEY, if set)")
      ->type_name("FILE");
  auto* compare = app.add_flag(
      "--compare-drafts", o->compare_drafts,
      "Measure each level twice, without the drafts of speculative decoding and with them (speculative.n_max)");
  app.add_option("--plot", o->plot, "Plot latency against concurrency into an SVG file")
      ->type_name("FILE")
      ->excludes(compare);
  app.add_flag("--json", o->json, "Print one JSON document");
  return [o] { return run_bench_serve(*o); };
}

}  // namespace infer
