// The engine on a tiny model with random K-quantized weights: what it computes for a sequence depends on that sequence
// only.
#include "src/engine/engine.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "ggml-like/error.h"
#include "tests/unit/engine/engine_world.h"

namespace infer {
namespace {

using namespace infer::test;

TEST_CASE("a text is the same in any chunks of the prompt and on any number of threads") {
  for (const char* type : {"Q4_K_M", "Q8_0"}) {
    CAPTURE(type);
    const Request request = make_request(1, 150, 12);
    const Answer whole = run_alone(type, request, small_options());
    CHECK(whole.tokens.size() == 12);
    for (const int step_tokens : {1, 7, 33, 64, 149}) {
      CAPTURE(step_tokens);
      EngineOptions options = small_options();
      options.step_tokens = step_tokens;
      options.n_threads = 1 + step_tokens % 3;
      check_same(whole, run_alone(type, request, options));
    }
  }
}

TEST_CASE("a text is the same alone and among others that come and go") {
  for (const char* type : {"Q4_K_M", "Q8_0"}) {
    CAPTURE(type);
    EngineOptions options = small_options();
    options.max_sequences = 6;
    options.step_tokens = 48;
    Engine engine(open_model(type), options);
    std::vector<std::pair<int, Request>> requests;
    for (int i = 0; i < 9; ++i) requests.emplace_back(2 * i, make_request(100 + i, 5 + 31 * i % 140, 3 + i * 2, i));
    const auto together = run_all(engine, requests);
    for (const auto& [start, request] : requests) {
      CAPTURE(request.id);
      check_same(run_alone(type, request, small_options()), together.at(request.id));
    }
  }
}

TEST_CASE("a prefix from the cache gives the same bits as a computed one") {
  EngineOptions options = small_options();
  options.max_sequences = 2;
  Engine engine(open_model("Q4_K_M"), options);
  const Request first = make_request(1, 140, 8);
  Request second = make_request(2, 140, 8);
  second.sampling.seed = first.sampling.seed;
  const auto answers = run_all(engine, {{0, first}, {3, second}});
  check_same(answers.at(1), answers.at(2));
  CHECK(engine.scheduler().stats().prefix_hit_tokens == 128);
}

TEST_CASE("a turn of a conversation computes only its new tokens, and gives the bits of computing everything") {
  Engine engine(open_model("Q4_K_M"), small_options());
  Request turn = make_request(1, 50, 21);
  turn.conversation = 7;
  std::vector<TokenId> text = turn.prompt;
  const auto first = run_all(engine, {{0, turn}}).at(1).tokens;
  text.insert(text.end(), first.begin(), first.end());
  for (RequestId id = 2; id <= 4; ++id) {
    CAPTURE(id);
    // The last token of a turn has not been computed yet; the third turn also removes two tokens.
    if (id == 3) text.resize(text.size() - 2);
    const int64_t computed = static_cast<int64_t>(text.size()) - (id == 3 ? 0 : 1);
    const Request next = make_request(id, 9, 12);
    text.insert(text.end(), next.prompt.begin(), next.prompt.end());
    turn = next;
    turn.prompt = text;
    turn.conversation = 7;
    const int64_t prompt_tokens = engine.stats().prompt_tokens;
    const Answer answer = run_all(engine, {{0, turn}}).at(id);
    CHECK(engine.stats().prompt_tokens - prompt_tokens == static_cast<int64_t>(text.size()) - computed);
    check_same(run_alone("Q4_K_M", turn, small_options()), answer);
    text.insert(text.end(), answer.tokens.begin(), answer.tokens.end());
  }
  engine.forget(7);
  CHECK(engine.scheduler().cache().pool(0).stats().used == 0);
}

TEST_CASE("each choice of a request has the text of a separate request, even if choices wait or are preempted") {
  Request request = make_request(1, 75, 40);
  request.sampling.seed = 5;
  request.choices = {11, 12, 13};
  for (const int max_sequences : {1, 2, 5}) {
    for (const int64_t cache_tokens : {0, 192}) {
      CAPTURE(max_sequences);
      CAPTURE(cache_tokens);
      EngineOptions options = small_options();
      options.max_sequences = max_sequences;
      options.cache_tokens = cache_tokens;
      Engine engine(open_model("Q4_K_M"), options);
      const auto answers = run_all(engine, {{0, request}, {3, make_request(2, 30, 50)}});
      CHECK(answers.size() == 5);
      for (uint64_t i = 0; i < 4; ++i) {
        CAPTURE(i);
        Request alone = request;
        alone.choices.clear();
        alone.sampling.seed = 5 + i;
        const Answer& answer = answers.at(i == 0 ? 1 : 10 + i);
        CHECK(answer.tokens.size() == 40);
        check_same(run_alone("Q4_K_M", alone, small_options()), answer);
      }
      CHECK((engine.scheduler().stats().preemptions > 0) == (max_sequences == 5 && cache_tokens == 192));
      if (max_sequences == 5 && cache_tokens == 0) CHECK(engine.stats().prompt_tokens == 75 + 30);
      CHECK(engine.scheduler().cache().pool(0).stats().used == 0);
    }
  }
}

// Hidden states of all positions of a prompt after the final norm.
std::vector<std::vector<float>> hidden_states(const Request& request) {
  std::vector<std::vector<float>> rows;
  EngineOptions options = small_options();
  options.all_logits = true;
  options.observers = {{"result_norm", [&](const TensorDesc& desc, const float* data, int64_t n, const StepView&) {
                          const int64_t d = desc.shape[1];
                          for (int64_t r = 0; r < n; ++r) rows.emplace_back(data + r * d, data + (r + 1) * d);
                        }}};
  Request all = request;
  all.pooling = Pooling::kNone;
  all.logits_from = 0;
  run_alone("Q4_K_M", all, options);
  return rows;
}

std::vector<float> pooled_by(Engine& engine, const Request& request) {
  std::vector<float> pooled;
  REQUIRE(engine.submit(request));
  while (!engine.idle()) {
    for (const Progress& p : engine.step()) {
      if (p.id == request.id) pooled = p.pooled;
    }
  }
  return pooled;
}

TEST_CASE("pooled hidden states are those of the requested positions, whatever the chunks, neighbours and cache") {
  Request request = make_request(1, 100, 0);
  const auto rows = hidden_states(request);
  REQUIRE(rows.size() == 100);
  for (const Pooling pooling : {Pooling::kMean, Pooling::kLast, Pooling::kCls}) {
    CAPTURE(static_cast<int>(pooling));
    request.pooling = pooling;
    std::vector<float> expected = pooling == Pooling::kCls ? rows.front() : rows.back();
    if (pooling == Pooling::kMean) {
      for (size_t i = 0; i < expected.size(); ++i) {
        double sum = 0;
        for (const auto& row : rows) sum += row[i];
        expected[i] = static_cast<float>(sum / 100);
      }
    }
    for (const int step_tokens : {1, 7, 512}) {
      CAPTURE(step_tokens);
      EngineOptions options = small_options();
      options.embeddings = true;
      options.max_sequences = std::min(step_tokens, 3);
      options.step_tokens = step_tokens;
      Engine engine(open_model("Q4_K_M"), options);
      CHECK(pooled_by(engine, request) == expected);
      // Again while a text is being generated, with the prompt in the cache.
      REQUIRE(engine.submit(make_request(2, 20, 30, 5)));
      engine.step();
      CHECK(pooled_by(engine, request) == expected);
      CHECK((engine.scheduler().stats().prefix_hits > 0) == (pooling == Pooling::kLast));
    }
  }
  Engine engine(open_model("Q4_K_M"), small_options());
  CHECK_THROWS_AS(static_cast<void>(engine.submit(request)), Error);
  request.max_new_tokens = 1;
  EngineOptions options = small_options();
  options.embeddings = true;
  Engine embedder(open_model("Q4_K_M"), options);
  CHECK_THROWS_AS(static_cast<void>(embedder.submit(request)), Error);
}

TEST_CASE("a bound on step time shortens chunks while a text is being generated, and changes no bit") {
  EngineOptions options = small_options();
  options.max_sequences = 2;
  options.max_itl_ms = 1e-6;  // shorter than any step
  Engine engine(open_model("Q4_K_M"), options);
  const Request writer = make_request(1, 20, 60), reader = make_request(2, 50, 5);
  REQUIRE(engine.submit(writer));
  engine.step();
  CHECK(engine.last_step().prompt_tokens == 20);
  const auto answers = run_all(engine, {{0, reader}});
  check_same(run_alone("Q4_K_M", reader, small_options()), answers.at(2));
  check_same(run_alone("Q4_K_M", writer, small_options()), [&] {
    Answer all = answers.at(1);
    all.tokens.insert(all.tokens.begin(), run_alone("Q4_K_M", make_request(1, 20, 1), small_options()).tokens[0]);
    return all;
  }());
  CHECK(engine.stats().prompt_steps == 51);  // one of 20 tokens, then 50 of one
}

TEST_CASE("an error in one sequence ends it and its choices, and no other") {
  Request hopeless = make_request(2, 30, 5);
  for (TokenId t = 0; t < 512; ++t) hopeless.sampling.logit_bias.emplace_back(t, -INFINITY);
  hopeless.choices = {21, 22};
  const Request good = make_request(1, 40, 8);
  EngineOptions options = small_options();
  options.max_sequences = 4;
  Engine strict(open_model("Q4_K_M"), options);
  REQUIRE(strict.submit(hopeless));
  CHECK_THROWS_AS(strict.step(), Error);

  options.isolate_errors = true;
  Engine engine(open_model("Q4_K_M"), options);
  REQUIRE(engine.submit(good));
  REQUIRE(engine.submit(hopeless));
  std::map<RequestId, std::string> errors;
  std::vector<TokenId> tokens;
  while (!engine.idle()) {
    for (const Progress& p : engine.step()) {
      if (p.id == 1) tokens.insert(tokens.end(), p.tokens.begin(), p.tokens.end());
      CHECK((p.finished == FinishReason::kError) == (p.id != 1));
      if (p.id != 1) errors[p.id] = p.error;
    }
  }
  CHECK(tokens == run_alone("Q4_K_M", good, small_options()).tokens);
  CHECK(errors.size() == 3);
  for (const RequestId id : {2, 21, 22}) CHECK(errors[id].find("token") != std::string::npos);
  CHECK(engine.scheduler().cache().pool(0).stats().used == 0);
  REQUIRE(engine.submit(make_request(21, 5, 1)));  // the ids are free again
}

TEST_CASE("what an engine reports about its steps") {
  EngineOptions options = small_options();
  options.max_sequences = 2;
  Engine engine(open_model("Q8_0"), options);
  REQUIRE(engine.submit(make_request(1, 50, 3)));
  double queued = -1;
  for (const Progress& p : engine.step()) queued = p.queue_seconds;
  CHECK(queued >= 0);
  CHECK(engine.last_step().sequences == 1);
  CHECK(engine.last_step().prompt_tokens == 50);
  CHECK(engine.last_step().decode_tokens == 0);
  REQUIRE(engine.submit(make_request(2, 20, 3)));
  for (const Progress& p : engine.step()) {
    if (p.id == 1) CHECK(p.queue_seconds == queued);
  }
  CHECK(engine.last_step().sequences == 2);
  CHECK(engine.last_step().prompt_tokens == 20);
  CHECK(engine.last_step().decode_tokens == 1);
  CHECK(engine.last_step().seconds > 0);
  CHECK(engine.scheduler().stats().admissions == 2);
}

TEST_CASE("DRY breakers are built once per list, and not by submit() if the request contains them") {
  Engine engine(open_model("Q8_0"), small_options());
  std::vector<Answer> answers;
  for (RequestId id = 1; id <= 4; ++id) {
    Request request = make_request(1, 40, 8);
    request.id = id;
    request.sampling.dry_multiplier = 1;
    if (id == 4) request.dry_breakers = engine.dry_breakers().get(request.sampling.dry_sequence_breakers);
    answers.push_back(run_all(engine, {{0, request}}).at(id));
    CHECK(answers.back().tokens == answers.front().tokens);
  }
  CHECK(engine.dry_breakers().builds() == 1);
}

TEST_CASE("many sequences and choices sample the same tokens on one thread and on several") {
  const auto answers = [](int n_threads) {
    EngineOptions options = small_options();
    options.n_threads = n_threads;
    options.max_sequences = 8;
    Engine engine(open_model("Q8_0"), options);
    std::vector<std::pair<int, Request>> requests;
    for (RequestId id = 10; id <= 30; id += 10) {
      Request request = make_request(id, 30, 10, static_cast<int>(id));
      request.sampling.top_k = 0;
      request.sampling.typical_p = id == 10 ? 0.99999f : 1;
      request.sampling.top_p = id == 20 ? 0.9f : 1;
      request.sampling.mirostat = id == 30 ? 2 : 0;
      request.choices = {id + 1, id + 2};
      requests.emplace_back(0, request);
    }
    std::map<RequestId, std::vector<TokenId>> tokens;
    for (const auto& [id, answer] : run_all(engine, requests)) tokens[id] = answer.tokens;
    return tokens;
  };
  const auto alone = answers(1);
  CHECK(alone.size() == 9);
  CHECK(answers(4) == alone);
}

TEST_CASE("the logits of a prompt are computed in as many rows as memory allows, with the same bits") {
  Request request = make_request(1, 200, 4);
  request.logits_from = 0;
  EngineOptions options = small_options();
  options.max_sequences = 2;
  options.all_logits = true;
  const Answer whole = run_alone("Q4_K_M", request, options);
  CHECK(whole.logits.size() == 203);
  options.all_logits = false;
  for (const auto& [rows, n_steps] : {std::pair(0, 100), std::pair(50, 4), std::pair(10000, 1)}) {
    CAPTURE(rows);
    options.logits_bytes = sizeof(float) * 512 * static_cast<uint64_t>(rows);
    Engine engine(open_model("Q4_K_M"), options);
    check_same(whole, run_all(engine, {{0, request}}).at(1));
    CHECK(engine.stats().prompt_steps == n_steps);
  }
}

TEST_CASE("drafts change nothing but the number of steps") {
  const Request request = make_request(1, 40, 24);
  const Answer plain = run_alone("Q4_K_M", request, small_options());
  for (const bool right : {true, false}) {
    CAPTURE(right);
    EngineOptions options = small_options();
    options.all_logits = true;  // rows for the drafts
    Engine engine(open_model("Q4_K_M"), options);
    Answer answer;
    REQUIRE(engine.submit(request));
    int steps = 0;
    while (!engine.idle()) {
      const size_t n = answer.tokens.size();
      if (n > 0 && n + 3 < plain.tokens.size()) {
        std::vector<TokenId> drafts(plain.tokens.begin() + n, plain.tokens.begin() + n + 3);
        if (!right) drafts[1] = drafts[1] == 5 ? 6 : 5;
        engine.propose(1, drafts);
      }
      for (const Progress& p : engine.step())
        answer.tokens.insert(answer.tokens.end(), p.tokens.begin(), p.tokens.end());
      ++steps;
    }
    CHECK(answer.tokens == plain.tokens);
    CHECK(steps < static_cast<int>(plain.tokens.size()));
    CHECK(engine.scheduler().stats().drafts.accepted > 0);
  }
}

TEST_CASE("a step has room for the drafts of all sequences") {
  EngineOptions options = small_options();
  options.max_sequences = 3;
  options.draft_rows = 4;
  Engine engine(open_model("Q8_0"), options);
  std::map<RequestId, std::vector<TokenId>> texts;
  for (RequestId id = 1; id <= 3; ++id) {
    const Request request = make_request(id, 20, 12, static_cast<int>(id));
    texts[id] = run_alone("Q8_0", request, small_options()).tokens;
    REQUIRE(engine.submit(request));
  }
  engine.step();
  for (const auto& [id, tokens] : texts) engine.propose(id, std::span(tokens).subspan(1, 4));
  for (const Progress& p : engine.step()) {
    CHECK(p.tokens == std::vector<TokenId>(texts[p.id].begin() + 1, texts[p.id].begin() + 6));
  }
  CHECK(engine.scheduler().stats().drafts.accepted == 12);
}

TEST_CASE("every layer of a model may be on the reference device") {
  const Request request = make_request(1, 20, 4);
  EngineOptions options = small_options();
  options.key_type = options.value_type = DataType::kF32;
  const Answer cpu = run_alone("Q8_0", request, options);
  for (int n = 0; n <= 3; ++n) {
    CAPTURE(n);
    options.devices = {"ref"};
    options.placement.n_gpu_layers = n;
    const Answer split = run_alone("Q8_0", request, options);
    REQUIRE(split.logits.size() == cpu.logits.size());
    const std::vector<float>&a = cpu.logits.begin()->second, &b = split.logits.begin()->second;
    double difference = 0;
    for (size_t i = 0; i < a.size(); ++i) difference = std::max(difference, std::abs(static_cast<double>(a[i]) - b[i]));
    // The CPU rounds activations to 8 bits, the reference does not.
    CHECK(difference < 0.05);
    CHECK((n == 0) == (difference == 0));
  }
}

TEST_CASE("a context beyond memory is refused with the sizes") {
  EngineOptions options = small_options();
  options.context = int64_t{1} << 39;
  CHECK_THROWS_AS(Engine(open_model("Q8_0"), options), Error);
  options.context = int64_t{1} << 62;
  CHECK_THROWS_AS(Engine(open_model("Q8_0"), options), Error);
}

TEST_CASE("token ids outside the vocabulary are refused") {
  Engine engine(open_model("Q8_0"), small_options());
  Request request = make_request(1, 4, 1);
  request.prompt[2] = 512;
  CHECK_THROWS_AS(static_cast<void>(engine.submit(request)), Error);
  request.prompt[2] = -1;
  CHECK_THROWS_AS(static_cast<void>(engine.submit(request)), Error);
}

}  // namespace
}  // namespace infer
