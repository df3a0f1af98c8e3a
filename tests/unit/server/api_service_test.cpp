// The routes, without sockets: the answers before a model is loaded, and with one.
#include "src/server/api_service.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/unit/server/loaded_service.h"

namespace infer {
namespace {

class Service {
 public:
  explicit Service(ApiOptions options = {}) : log_(LogLevel::kError, false), service_(options, metrics_, log_) {}
  ~Service() { service_.api().close_model(); }

  void load() {
    auto served = test::random_served_model(metrics_);
    engine_ = served->engine.get();
    service_.api().set_model(std::move(served));
  }
  EngineThread& engine() { return *engine_; }

  // The status and body of a response, streamed or not. A client that `leaves` is gone from the beginning.
  std::pair<int, std::string> ask(const std::string& method, const std::string& path, const std::string& body = "",
                                  const std::string& headers = "", bool leaves = false) {
    std::string text = method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers;
    if (method == "POST") text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    const HttpHead head = parse_http_head(text + "\r\n", {});
    HttpResponse response;
    if (service_.admit(head, "peer", response)) {
      service_.handle({head, body, "peer", [leaves] { return leaves; }, {}}, response);
    }
    if (response.stream) {
      response.stream([&](std::string_view piece) {
        response.body += piece;
        return !leaves;
      });
    }
    return {response.status, response.body};
  }

  Metrics metrics_;
  ServerLog log_;
  ApiService service_;
  EngineThread* engine_ = nullptr;
};

TEST_CASE("api: before the model is loaded") {
  Service s;
  CHECK(s.ask("GET", "/health") == std::pair<int, std::string>(503, "{\"status\":\"loading\"}"));
  CHECK(s.ask("POST", "/v1/completions", "{}").first == 503);
  CHECK(s.ask("GET", "/v1/models").first == 503);
  CHECK(s.ask("GET", "/stats").first == 503);
  CHECK(s.ask("GET", "/version").first == 200);
  CHECK(s.ask("GET", "/metrics").first == 200);
  CHECK(s.ask("GET", "/nowhere").first == 404);
  CHECK(s.ask("GET", "/v1/completions").first == 405);
}

TEST_CASE("api: every route except /health requires a key") {
  ApiOptions options;
  options.keys = {"secret"};
  Service s(options);
  for (const char* path : {"/version", "/metrics", "/stats", "/v1/models", "/nowhere"})
    CHECK(s.ask("GET", path).first == 401);
  for (const std::string& path : ApiService::post_paths()) CHECK(s.ask("POST", path, "{}").first == 401);
  CHECK(s.ask("GET", "/health").first == 503);
  CHECK(s.ask("GET", "/version", "", "Authorization: Bearer secret\r\n").first == 200);
}

TEST_CASE("api: completions whole and streamed, embeddings, tokens") {
  Service s;
  s.load();
  CHECK(s.ask("GET", "/health").first == 200);
  const auto [status, body] =
      s.ask("POST", "/v1/completions",
            R"({"prompt": [5, 6, 7], "max_tokens": 5, "ignore_eos": true, "n": 2, "temperature": 0})");
  REQUIRE(status == 200);
  const Json answer = Json::parse(body);
  CHECK(answer["usage"]["completion_tokens"] == 10);
  CHECK(answer["choices"][0]["text"] == answer["choices"][1]["text"]);
  const std::string streamed =
      s.ask("POST", "/v1/completions",
            R"({"prompt": [5, 6, 7], "max_tokens": 5, "ignore_eos": true, "stream": true, "temperature": 0})")
          .second;
  CHECK(streamed.ends_with("data: [DONE]\n\n"));
  CHECK(s.ask("POST", "/v1/completions", R"({"prompt": [5, 6, 7], "max_tokens": 0, "n": 3})").first == 200);
  const auto embedding = s.ask("POST", "/v1/embeddings", R"({"input": [[5], [6, 7]]})");
  CHECK(Json::parse(embedding.second)["data"].size() == 2);
  // A model without a chat template uses ChatML.
  const char* chat = R"({"messages": [{"role": "user", "content": "x"}], "max_tokens": 1})";
  CHECK(s.ask("POST", "/v1/chat/completions", chat).first == 200);
  CHECK(s.metrics_.gauges().cache().used == 0);
}

TEST_CASE("api: a client that leaves frees its blocks") {
  Service s;
  s.load();
  const char* body = R"({"prompt": [5, 6, 7], "max_tokens": 250, "ignore_eos": true, "stream": )";
  CHECK(s.ask("POST", "/v1/completions", std::string(body) + "false}", "", true).first == kClientGone);
  s.ask("POST", "/v1/completions", std::string(body) + "true}", "", true);
  CHECK(s.metrics_.cancelled == 2);
  // The engine handles cancellations before its next step, and this request causes one.
  CHECK(s.ask("POST", "/v1/completions", R"({"prompt": [5], "max_tokens": 1})").first == 200);
  CHECK(s.metrics_.gauges().cache().used == 0);
}

TEST_CASE("api: a cancelled request releases its blocks within two steps") {
  Service s;
  s.load();
  for (int n_cancelled = 0; n_cancelled < 20;) {
    const auto generation = std::make_shared<Generation>();
    generation->prompt = {5, 6, 7};
    generation->params.max_tokens = 250;
    generation->params.ignore_eog = true;
    generation->params.n = 2;
    generation->answers = std::make_shared<AnswerQueue>();
    s.engine().submit(generation);
    while (generation->answers->wait(std::chrono::milliseconds(100)).empty()) {
    }
    s.engine().cancel(*generation);
    const int64_t before = s.metrics_.gauges().steps;
    int n_ended = 0, n_early = 0;
    while (n_ended < 2) {
      for (const AnswerEvent& event : generation->answers->wait(std::chrono::milliseconds(100))) {
        n_ended += event.finished != FinishReason::kNone;
        n_early += event.finished == FinishReason::kMaxTokens;
      }
    }
    // It may reach its end before cancel() if this thread gets no processor.
    if (n_early > 0) continue;
    ++n_cancelled;
    const EngineGauges after = s.metrics_.gauges();
    CHECK(after.cache().used == 0);
    CHECK(after.steps <= before + 2);
  }
}

// A list of n prompts of three tokens.
std::string prompts(int n) {
  Json list = Json::array();
  for (int i = 0; i < n; ++i) list.push_back({5, 6, 7 + i});
  return list.dump();
}

TEST_CASE("api: a request with many prompts or choices runs some at a time, and leaves a place for others") {
  ApiOptions options;
  options.admission = {4, 0, 1 << 20, 0};
  Service s(options);
  s.load();
  CHECK(s.ask("POST", "/v1/embeddings", R"({"input": )" + prompts(256) + "}").first == 200);
  CHECK(s.ask("POST", "/v1/completions", R"({"max_tokens": 4, "prompt": )" + prompts(5) + "}").first == 200);
  CHECK(s.ask("POST", "/v1/completions", R"({"max_tokens": 4, "n": 5, "prompt": [5, 6, 7]})").first == 200);
  CHECK(s.ask("POST", "/v1/completions", R"({"max_tokens": 4, "n": 3, "prompt": )" + prompts(5) + "}").first == 200);

  Admission admission({5, 0, 1 << 20, 0});
  GenerationRun run(s.engine());
  const std::vector<uint64_t> before = s.metrics_.batch_size.snapshot().counts;
  for (int i = 0; i < 12; ++i) {
    auto generation = std::make_unique<Generation>();
    generation->prompt = {5, 6, 7 + i};
    generation->params.max_tokens = 6;
    generation->params.ignore_eog = true;
    generation->params.n = 1 + i % 5;
    run.add(std::move(generation));
  }
  run.start(admission);
  int n_ended = 0;
  const GenerationRun::Watch watch{[] { return false; }, [] { return false; }, Clock::now() + std::chrono::hours(1)};
  run.run(watch, [&](AnswerEvent&& event) { n_ended += event.finished != FinishReason::kNone; });
  CHECK(n_ended == run.n_choices());
  // Four of five places: alone, a prompt with five choices takes as many.
  const Histogram::Snapshot batches = s.metrics_.batch_size.snapshot();
  for (size_t i = 0; i < batches.counts.size(); ++i) {
    CAPTURE(i);
    if (i < batches.bounds.size() && batches.bounds[i] < 4) continue;
    CHECK((batches.counts[i] > before[i]) == (i < batches.bounds.size() && batches.bounds[i] == 4));
  }
  CHECK(admission.in_flight() == 0);
}

TEST_CASE("api: DRY breakers are built once, on the thread that submits") {
  Service s;
  s.load();
  for (int i = 0; i < 5; ++i) {
    const auto generation = std::make_shared<Generation>();
    generation->prompt = {5, 6, 7};
    generation->params.max_tokens = 2;
    generation->params.sampling.dry_multiplier = i < 4 ? 1.0f : 0.0f;
    if (i == 3) generation->params.sampling.dry_sequence_breakers = {"x"};
    generation->answers = std::make_shared<AnswerQueue>();
    s.engine().submit(generation);
    CHECK((generation->dry_breakers != nullptr) == (i < 4));
    while (generation->answers->wait(std::chrono::milliseconds(100)).empty()) {
    }
  }
  CHECK(s.engine().dry_breaker_builds() == 2);
}

TEST_CASE("api: a priority above the server's limit is refused by the name of the flag") {
  Service s;
  s.load();
  const auto ask = [&](int priority) {
    return s.ask("POST", "/v1/completions",
                 R"({"prompt": [5], "max_tokens": 1, "priority": )" + std::to_string(priority) + "}");
  };
  CHECK(ask(0).first == 200);
  CHECK(ask(-100).first == 200);
  const auto [status, body] = ask(1);
  CHECK(status == 400);
  CHECK(Json::parse(body)["error"]["message"] ==
        "priority: expected at most 0, found 1; the server's --max-priority sets the limit");
}

TEST_CASE("api: cached prefixes are kept apart by API key") {
  const auto cached = [](Service& s, const char* key, const char* salt) {
    Json body = {{"prompt", std::vector<int>(100, 9)}, {"max_tokens", 1}};
    if (*salt) body["cache_salt"] = salt;
    const auto [status, text] =
        s.ask("POST", "/v1/completions", body.dump(), "Authorization: Bearer " + std::string(key) + "\r\n");
    REQUIRE(status == 200);
    return Json::parse(text)["usage"]["prompt_tokens_details"]["cached_tokens"].get<int>();
  };
  for (const bool share : {false, true}) {
    CAPTURE(share);
    ApiOptions options;
    options.keys = {"a", "b"};
    options.share_prefixes = share;
    Service s(options);
    s.load();
    CHECK(cached(s, "a", "") == 0);
    CHECK(cached(s, "a", "") == 96);
    CHECK(cached(s, "b", "") == (share ? 96 : 0));
    CHECK(cached(s, "b", "") == 96);
    // No salt reaches the scope of another key.
    for (const char* salt : {"0:", "0", "a", ":", "1:"}) {
      CHECK(cached(s, "b", salt) == 0);
      CHECK(cached(s, "a", salt) == (share ? 96 : 0));
      CHECK(cached(s, "b", salt) == 96);
    }
  }
  ApiOptions one;
  one.keys = {"a"};
  Service alone(one);
  alone.load();
  CHECK(cached(alone, "a", "") == 0);
  CHECK(cached(alone, "a", "") == 96);
}

TEST_CASE("api: a server that stops accepts no more requests and ends those in progress") {
  Service s;
  s.load();
  s.service_.api().drain();
  CHECK(s.ask("GET", "/health").first == 503);
  CHECK(s.ask("POST", "/v1/completions", "{}").first == 503);
  Service other;
  other.load();
  other.service_.api().cancel_all();
  CHECK(other.ask("POST", "/v1/completions", R"({"prompt": [5], "max_tokens": 250, "ignore_eos": true})").first == 503);
}

TEST_CASE("api: fingerprints tell files apart") {
  const auto path = std::filesystem::temp_directory_path() / ("infer_print_" + std::to_string(getpid()) + ".gguf");
  const auto print_of = [&](const char* type) {
    write_random_model("tiny", type, path.string());
    return model_fingerprint(*GgufFile::open(path.string()));
  };
  const std::string one = print_of("Q8_0");
  CHECK(one == print_of("Q8_0"));
  CHECK(one != print_of("Q4_0"));
  CHECK(one.size() == 16);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace infer
