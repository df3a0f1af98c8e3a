// Engines that propose drafts themselves: every text is, to the bit, the text without drafts.
#include "src/engine/draft/speculator.h"

#include "tests/unit/engine/engine_world.h"

namespace infer {
namespace {

using namespace infer::test;

EngineOptions options_with(int depth, int max_sequences) {
  EngineOptions options = small_options();
  options.max_sequences = max_sequences;
  options.cache_tokens = 512 * 16;
  options.speculation.lookup = true;
  options.speculation.fixed = depth;
  return options;
}

// A prompt that repeats itself with changes, as a text to be edited does.
Request repeating_request(RequestId id, float temperature) {
  Request request = make_request(id, 12 + static_cast<int>(id % 7), 40, static_cast<int>(id));
  const std::vector<TokenId> once = request.prompt;
  for (int i = 0; i < 3; ++i) {
    request.prompt.insert(request.prompt.end(), once.begin(), once.end());
    request.prompt[request.prompt.size() - 2] = 3 + i;
  }
  request.sampling.temperature = temperature;
  request.sampling.top_k = 5;
  return request;
}

// INFER_TEST_FULL=1: all depths and a hundred prompts.
bool full() { return std::getenv("INFER_TEST_FULL") != nullptr; }
// 0: as many drafts as pay.
std::vector<int> depths() {
  return full() ? std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8} : std::vector<int>{0, 1, 3, 8};
}

using Texts = std::map<RequestId, std::vector<TokenId>>;

Texts texts_of(Engine& engine, const std::vector<Request>& requests) {
  Texts texts;
  for (const Request& r : requests) REQUIRE(engine.submit(r));
  for (int step = 0; !engine.idle(); ++step) {
    REQUIRE(step < 20000);
    for (const Progress& p : engine.step()) {
      CHECK(p.error == "");
      texts[p.id].insert(texts[p.id].end(), p.tokens.begin(), p.tokens.end());
    }
  }
  return texts;
}

std::vector<Request> many_requests(int n, float temperature) {
  std::vector<Request> requests;
  for (int i = 1; i <= n; ++i) requests.push_back(repeating_request(static_cast<RequestId>(i), temperature));
  return requests;
}

Texts plain_texts(const std::vector<Request>& requests, const std::string& model = "Q4_K_M") {
  EngineOptions options = small_options();
  options.max_sequences = 16;
  options.cache_tokens = 512 * 16;
  Engine engine(open_model(model), options);
  return texts_of(engine, requests);
}

void check_blocks_returned(const Engine& engine) {
  const auto check = [](const Scheduler& scheduler) {
    CHECK(scheduler.idle());
    CHECK(scheduler.cache().pool(0).available() == scheduler.cache().groups()[0].n_blocks);
  };
  check(engine.scheduler());
  if (const DraftModel* draft = engine.speculator()->draft()) check(draft->scheduler());
}

// The target, and as its draft the same weights in fewer bits.
constexpr const char *kTarget = "Q8_0", *kDraft = "Q4_K_M";

EngineOptions options_with_model(int depth, int max_sequences, bool lookup = false) {
  EngineOptions options = options_with(depth, max_sequences);
  options.speculation.lookup = lookup;
  options.speculation.draft = open_model(kDraft);
  return options;
}

TEST_CASE("looked-up drafts change no text, at any temperature, depth and number of sequences") {
  for (const float temperature : {0.0f, 0.7f, 1.0f}) {
    const std::vector<Request> requests = many_requests(full() ? 100 : 12, temperature);
    const Texts expected = plain_texts(requests);
    for (const int depth : depths()) {
      for (const int n : {1, 4, 16}) {
        CAPTURE(temperature);
        CAPTURE(depth);
        CAPTURE(n);
        Engine engine(open_model("Q4_K_M"), options_with(depth, n));
        CHECK(texts_of(engine, requests) == expected);
        if (depth > 0) CHECK(engine.scheduler().stats().drafts.accepted > 0);
        CHECK(engine.scheduler().stats().drafts.accepted <= engine.scheduler().stats().drafts.proposed);
        check_blocks_returned(engine);
      }
    }
  }
}

TEST_CASE("drafts change no text when blocks run out") {
  const std::vector<Request> requests = many_requests(12, 0.7f);
  const Texts expected = plain_texts(requests);
  EngineOptions options = options_with(5, 8);
  options.cache_tokens = 320;
  Engine engine(open_model("Q4_K_M"), options);
  CHECK(texts_of(engine, requests) == expected);
  CHECK(engine.scheduler().stats().preemptions > 0);
  CHECK(engine.scheduler().stats().drafts.accepted > 0);
  check_blocks_returned(engine);
}

TEST_CASE("drafts change no text of several choices, nor their logits") {
  std::vector<Request> requests = many_requests(3, 1.0f);
  for (Request& r : requests) {
    r.choices = {r.id * 100 + 1, r.id * 100 + 2};
    r.report_logits = true;
  }
  const auto collect = [&](const EngineOptions& options) {
    Engine engine(open_model("Q4_K_M"), options);
    std::map<std::pair<RequestId, int64_t>, std::vector<float>> rows;
    engine.on_logits([&](RequestId id, int64_t position, std::span<const float> row) {
      rows[{id, position}].assign(row.begin(), row.end());
    });
    const Texts texts = texts_of(engine, requests);
    // Rows behind a rejected draft are reported again, or are those of the last step and beyond the text.
    std::erase_if(rows, [&](const auto& row) {
      const auto& [id, position] = row.first;
      const Request& r = requests[(id > 100 ? id / 100 : id) - 1];
      return position + 1 >= std::ssize(r.prompt) + std::ssize(texts.at(id));
    });
    return std::pair(texts, rows);
  };
  EngineOptions plain = small_options();
  plain.max_sequences = 16;
  CHECK(collect(options_with(4, 16)) == collect(plain));
}

TEST_CASE("requests of another salt, and those that share nothing, are not looked at") {
  // The second request has the text of the first as its prompt's end would continue it.
  Request first = make_request(1, 30, 20), second = first;
  second.id = 2;
  const auto drafts_of_second = [&](const std::string& salt, bool reuse) {
    Engine engine(open_model("Q4_K_M"), options_with(4, 1));
    texts_of(engine, {first});
    const int64_t before = engine.scheduler().stats().drafts.accepted;
    Request r = second;
    r.cache_salt = salt;
    r.reuse_prefix = reuse;
    texts_of(engine, {r});
    return engine.scheduler().stats().drafts.accepted - before;
  };
  Engine alone(open_model("Q4_K_M"), options_with(4, 1));
  texts_of(alone, {second});
  const int64_t by_itself = alone.scheduler().stats().drafts.accepted;
  CHECK(drafts_of_second("", true) > by_itself + 8);
  CHECK(drafts_of_second("other", true) == by_itself);
  CHECK(drafts_of_second("", false) == by_itself);
}

TEST_CASE("a draft model changes no text, at any temperature, depth and number of sequences, look-up first or not") {
  for (const float temperature : {0.0f, 0.7f, 1.0f}) {
    const std::vector<Request> requests = many_requests(full() ? 100 : 6, temperature);
    const Texts expected = plain_texts(requests, kTarget);
    for (const int depth : depths()) {
      for (const int n : {1, 4, 16}) {
        CAPTURE(temperature);
        CAPTURE(depth);
        CAPTURE(n);
        Engine engine(open_model(kTarget), options_with_model(depth, n, depth % 2 == 1));
        CHECK(texts_of(engine, requests) == expected);
        const SchedulerStats& stats = engine.scheduler().stats();
        // Few bits agree with more in most tokens.
        if (depth > 0) CHECK(2 * stats.drafts.accepted > stats.drafts.proposed / depth);
        check_blocks_returned(engine);
      }
    }
  }
}

TEST_CASE("a draft model changes no text when the blocks of the target, or its own, run out") {
  const std::vector<Request> requests = many_requests(12, 0.7f);
  const Texts expected = plain_texts(requests, kTarget);
  int64_t of_target = 0, of_draft = 0;
  for (const int64_t tokens : {160, 192, 224, 256, 288, 320, 352, 384}) {
    CAPTURE(tokens);
    EngineOptions options = options_with_model(5, 8);
    options.cache_tokens = tokens;
    Engine engine(open_model(kTarget), options);
    CHECK(texts_of(engine, requests) == expected);
    of_target += engine.scheduler().stats().preemptions;
    of_draft += engine.speculator()->draft()->scheduler().stats().preemptions;
    CHECK(engine.scheduler().stats().drafts.accepted > 0);
    check_blocks_returned(engine);
  }
  CHECK(of_target > 0);
  CHECK(of_draft > 0);
}

TEST_CASE("a draft model drafts for several choices, and with penalties, biases and DRY") {
  std::vector<Request> requests = many_requests(4, 1.0f);
  for (Request& r : requests) r.choices = {r.id * 100 + 1, r.id * 100 + 2};
  requests[1].sampling.repeat_penalty = 1.2f;
  requests[2].sampling.logit_bias = {{5, 3.0f}, {511, -3.0f}};
  requests[3].sampling.dry_multiplier = 0.8f;
  const Texts expected = plain_texts(requests, kTarget);
  Engine engine(open_model(kTarget), options_with_model(4, 16));
  CHECK(texts_of(engine, requests) == expected);
  CHECK(engine.scheduler().stats().drafts.accepted > engine.scheduler().stats().drafts.proposed / 3);
  check_blocks_returned(engine);
}

TEST_CASE("a draft below the least probability is not proposed, and too few of them are not either") {
  const std::vector<Request> requests = many_requests(6, 1.0f);
  const Texts expected = plain_texts(requests, kTarget);
  const auto n_proposed = [&](double least_probability, int least) {
    EngineOptions options = options_with_model(6, 4);
    options.speculation.least_probability = least_probability;
    options.speculation.least = least;
    Engine engine(open_model(kTarget), options);
    CHECK(texts_of(engine, requests) == expected);
    const SchedulerStats& stats = engine.scheduler().stats();
    return stats.drafts.proposed;
  };
  const int64_t all = n_proposed(0, 0), probable = n_proposed(0.004, 0), many = n_proposed(0.004, 2);
  CHECK(probable < all);
  CHECK(many < probable);
  CHECK(many > 0);
}

TEST_CASE("a soak with drafts: cancellations at any time leave nothing behind") {
  EngineOptions options = options_with_model(3, 6, true);
  options.cache_tokens = 256;
  Engine engine(open_model(kTarget), options);
  uint64_t state = 7;
  const auto below = [&](uint64_t n) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (state >> 33) % n;
  };
  RequestId next = 1;
  for (int step = 0; step < 3000 || !engine.idle(); ++step) {
    REQUIRE(step < 20000);
    if (step < 3000 && below(3) == 0) {
      Request request = repeating_request(next, below(2) == 0 ? 0.0f : 0.9f);
      request.id = next++;
      request.max_new_tokens = static_cast<int32_t>(1 + below(30));
      if (below(8) == 0) request.choices = {next, next + 1}, next += 2;
      REQUIRE(engine.submit(std::move(request)));
    }
    if (below(6) == 0) engine.cancel(1 + below(next));
    engine.step();
  }
  CHECK(next > 500);
  CHECK(engine.scheduler().stats().preemptions > 0);
  check_blocks_returned(engine);
}

TEST_CASE("a draft that does not go with the model is refused in a sentence") {
  const auto error_of = [](const std::shared_ptr<Model>& target, const std::shared_ptr<Model>& draft) -> std::string {
    EngineOptions options = small_options();
    options.speculation.draft = draft;
    try {
      Engine engine(target, options);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "";
  };
  CHECK(error_of(open_model(kDraft), open_model(kTarget)).find("is not smaller than the model") != std::string::npos);
  const std::shared_ptr<Model> other = load_model(GgufFile::open(INFER_SOURCE_DIR "/tests/data/arch/llama-gqa.gguf"));
  const std::string found = error_of(open_model(kTarget), other);
  CHECK(found.find("vocabulary") != std::string::npos);
  CHECK(found.ends_with("Choose a draft with the same vocabulary."));
}

}  // namespace
}  // namespace infer
