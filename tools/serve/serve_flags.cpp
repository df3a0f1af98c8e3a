#include <memory>

#include "ggml-like/error.h"
#include "src/server/access.h"
#include "src/server/requests.h"
#include "tools/arguments.h"
#include "tools/chat_template_flag.h"
#include "tools/devices.h"
#include "tools/llama_cpp_flags.h"
#include "tools/serve/serve.h"

namespace infer {
namespace {

// All flags with their values, for /version, except API keys.
Json settings_of(const CLI::App& app) {
  Json settings = Json::object();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty() || option->get_group().empty() || option->count() == 0) continue;
    const std::string& name = option->get_lnames().front();
    if (name == "help" || name == "config" || name == "api-key-file" || name == "api-key" || name == "tls-key")
      continue;
    const auto values = option->results();
    settings[name] = values.size() == 1 ? Json(values.front()) : Json(values);
  }
  return settings;
}

CLI::Validator no_zero(const std::string& sentence) {
  return {[sentence](std::string& text) { return text == "0" ? sentence : ""; }, ""};
}

// Adds flags to one group of the help text.
struct Flags {
  CLI::App& app;

  CLI::Option* integer(const char* name, auto& value, const char* text, int64_t least, int64_t most) const {
    return app.add_option(name, value, text)
        ->check(not_empty())
        ->check(whole_number(least, most))
        ->capture_default_str()
        ->type_name("N");
  }
  CLI::Option* seconds(const char* name, std::chrono::seconds& value, const char* text, int least, int most) const {
    return app
        .add_option_function<int>(
            name, [&value](int n) { value = std::chrono::seconds(n); }, text)
        ->check(not_empty())
        ->check(whole_number(least, most))
        ->default_str(std::to_string(value.count()))
        ->type_name("N");
  }
  CLI::Option* text(const char* name, std::string& value, const char* help, const char* type) const {
    return app.add_option(name, value, help)->check(not_empty())->type_name(type);
  }
  CLI::Option* word(const char* name, std::string& value, const char* help, std::vector<std::string> words) const {
    return app.add_option(name, value, help)->check(one_of(std::move(words)))->capture_default_str()->type_name("WORD");
  }
};

void add_model_and_chat(const Flags& flags, ServeOptions& o) {
  add_model_flags(flags.app, o.model);
  add_named_model_flags(flags.app, o.named_model);
  flags.app.get_option("--ctx-size")
      ->description("Tokens per prompt and answer (default: the trained context, as far as memory allows)");
  flags.text("-a,--alias", o.alias,
             "The model's name for clients; further names after commas (default: the file's name)", "NAME,...");
  add_chat_template_flags(flags.app, o.chat_template, o.api.template_variables);
  add_reasoning_flags(flags.app, o.reasoning);
  flags.app.add_flag("--special-in-content", o.special_in_content,
                     "Read control tokens such as <|im_end|> in messages as tokens (default: as text)");
  flags.app.add_flag("--schema-lenient", o.api.schema_lenient,
                     "Ignore keywords of JSON schemas that cannot be enforced, and list them in the answer's warnings");
  flags.app
      .add_option_function<std::string>(
          "--pooling", [&o](const std::string& word) { o.api.pooling = pooling_of(word); },
          "Pooling for embeddings: the mean of the hidden states, the last or the first (default: the model's own)")
      ->check(one_of({"mean", "last", "cls"}))
      ->type_name("WORD");
}

void add_speculation(const Flags& flags, ServeOptions& o) { add_speculation_flags(flags.app, o.speculation); }

void add_network(const Flags& flags, ServeOptions& o) {
  flags.text("--host", o.http.host, "Address to listen on (default: 127.0.0.1)", "HOST");
  flags.integer("--port", o.http.port, "Port to listen on; 0: any free port", 0, 65535);
  flags.app
      .add_option_function<std::string>(
          "--api-key",
          [&o](const std::string& keys) {
            o.api_keys = split_api_keys(keys);
            if (o.api_keys.empty()) throw Error(ErrorCode::kInvalidArgument, "--api-key has no key. Give KEY,...");
          },
          "API keys, separated by commas. Other users of this machine can see them; --api-key-file hides them")
      ->check(not_empty())
      ->type_name("KEY,...");
  flags.text("--api-key-file", o.api_key_file,
             "File of API keys, one per line; $INFER_API_KEY may hold more, separated by commas", "FILE");
  flags.app.add_flag(
      "--share-prefixes", o.api.share_prefixes,
      "Let requests with different API keys share cached prefixes; a user can then detect what others sent");
  flags.app.add_flag("--no-auth", o.no_auth,
                     "Let anyone who can reach the server use it, even on addresses outside this machine");
  flags.app
      .add_option("--allowed-host", o.api.allowed_hosts,
                  "Host name that clients may use, besides localhost and IP addresses; *: any (may be repeated)")
      ->take_all()
      ->type_name("NAME");
  flags.app
      .add_option(
          "--cors-origin,--cors-origins", o.api.cors_origins,
          "Origin or host whose web pages may call the server, such as https://app.example or localhost; *: any "
          "(may be repeated)")
      ->delimiter(',')
      ->take_all()
      ->type_name("ORIGIN");
  flags.text("--tls-cert,--ssl-cert-file", o.http.tls_certificate, "Certificate chain (PEM): serve HTTPS", "FILE");
  flags.text("--tls-key,--ssl-key-file", o.http.tls_key, "Key of the certificate (PEM)", "FILE");
}

void add_capacity(const Flags& flags, ServeOptions& o) {
  EngineOptions& engine = o.model.engine;
  const int usual = engine.max_sequences;
  flags.app
      .add_option_function<int>(
          flag_names("-np,--parallel"), [&engine, usual](int n) { engine.max_sequences = n < 0 ? usual : n; },
          "Answers computed concurrently; -1: the default")
      ->check(not_empty())
      ->check(whole_number(-1, 512))
      ->check(no_zero("At least one answer is computed at a time; -1 is the default."))
      ->default_str(std::to_string(usual))
      ->type_name("N");
  flags.integer("--kv-tokens", engine.cache_tokens,
                "Tokens in the KV cache, for all requests; 0: four full contexts, or --parallel if fewer, as far as "
                "memory allows",
                0, int64_t{1} << 40);
  add_batch_flags(flags.app, o.model);
  flags.app
      .add_option("--max-itl-ms", engine.max_itl_ms,
                  "Limit in milliseconds on a step with a prompt chunk while answers are being generated; "
                  "0: no limit")
      ->check(number(0, 1e6))
      ->capture_default_str()
      ->type_name("MS");
  flags.integer("--max-queue", o.api.admission.waiting, "Answers that may wait beyond --parallel", 0, 1 << 20);
  flags.integer("--max-queue-tokens", o.api.admission.waiting_tokens, "Prompt tokens that may wait", 1,
                int64_t{1} << 40);
  flags.integer("--max-per-key", o.api.admission.per_key, "Concurrent requests per API key; 0: no limit", 0, 1 << 20);
  flags.integer("--max-connections", o.http.max_connections, "Concurrent connections", 1, 65536);
  flags
      .integer("-n,--predict,--n-predict", o.api.limits.default_max_tokens,
               "Default limit on an answer's tokens; -1: to the end of the context", -1, INT32_MAX)
      ->check(no_zero("An answer has at least one token; -1 sets no limit."));
}

void add_limits(const Flags& flags, ServeOptions& o) {
  flags.integer("--max-body", o.http.max_body_bytes, "Maximum bytes in a request's body", 1, int64_t{1} << 32);
  flags.integer("--max-head", o.http.head.bytes, "Maximum bytes in a request's head", 256, 1 << 20);
  flags.integer("--max-depth", o.api.limits.max_depth, "Maximum nesting of a request's JSON", 4, 512);
  flags.integer("--max-n", o.api.limits.max_choices, "Maximum answers per request (n times prompts)", 1, 512);
  flags.integer("--max-priority", o.api.limits.max_priority, "Maximum priority of a request", 0, 100);
  flags.integer("--max-stop", o.api.limits.max_stops, "Maximum stop strings in a request", 0, 1024);
  flags.integer("--max-logit-bias", o.api.limits.max_logit_biases, "Maximum tokens in a request's logit_bias", 0,
                1 << 20);
  flags.app
      .add_option_function<int>(
          flag_names("-to,--timeout"),
          [&o](int n) { o.http.timeouts.read = o.http.timeouts.write = std::chrono::seconds(n); },
          "Sets --read-timeout and --write-timeout")
      ->check(not_empty())
      ->check(whole_number(1, 86400))
      ->type_name("N");
  flags.seconds("--idle-timeout", o.http.timeouts.idle, "Seconds that a connection may wait for a request", 1, 86400);
  flags.seconds("--read-timeout", o.http.timeouts.read, "Seconds for a request to arrive", 1, 86400);
  flags.seconds("--write-timeout", o.http.timeouts.write, "Seconds that a client may go without reading its answer", 1,
                86400);
  flags.seconds("--request-timeout", o.api.request_timeout, "Seconds per request, including waiting", 1, 1 << 24);
  flags.seconds("--drain-timeout", o.drain_timeout, "Seconds that requests in progress get to finish after SIGTERM", 0,
                1 << 24);
}

void add_logs(const Flags& flags, ServeOptions& o) {
  flags.word("--log-format", o.log_format, "Format of the log", {"text", "json"});
  flags.word("--log-level", o.log_level, "Least severe level to log", {"error", "info", "debug"});
  flags.app.add_flag_callback(
      flag_names("-v,--verbose,--log-verbose"),
      [&o] {
        o.model.verbose = true;
        o.log_level = "debug";
      },
      "The same as --log-level debug; also names the flags that had nothing to do");
  flags.app.add_flag_callback(
      "--no-metrics", [&o] { o.api.serve_metrics = false; }, "Turn off /metrics");
}

}  // namespace

std::function<int()> define_serve(CLI::App& app) {
  const auto o = std::make_shared<ServeOptions>();
  // Options join the default group at the time they are added.
  const auto in_group = [&](const char* group, void (*add)(const Flags&, ServeOptions&)) {
    CLI::OptionDefaults& defaults = *app.option_defaults();
    const std::string before = defaults.get_group();
    defaults.group(group);
    add({app}, *o);
    defaults.group(before);
  };
  add_model_and_chat({app}, *o);
  in_group("Speculative decoding", add_speculation);
  in_group("Network", add_network);
  in_group("Capacity", add_capacity);
  in_group("Limits", add_limits);
  in_group("Logs", add_logs);
  add_sampling_flags(app, o->api.sampling);
  add_list_devices_flag(app);
  app.set_config("--config", "", "File with flags, one per line: port = 8080; the command line takes precedence")
      ->type_name("FILE");
  add_llama_cpp_flags(app, o->model.ignored);
  app.allow_config_extras(CLI::config_extras_mode::error);
  return [o, &app] {
    o->api.settings = settings_of(app);
    return run_serve(*o);
  };
}

}  // namespace infer
