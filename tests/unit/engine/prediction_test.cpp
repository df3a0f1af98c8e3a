// Engines whose model drafts for itself with a prediction layer: every text is bit-identical to the text without
// drafts.
#include "src/engine/draft/load_draft.h"
#include "tests/support/shipped_models.h"
#include "tests/unit/engine/speculation_world.h"

namespace infer {
namespace {

using namespace infer::test;

constexpr const char* kPredictingModels[] = {"arch/glm4moe-nextn", "arch/qwen35-nextn", "arch/deepseek2-nextn",
                                             "prediction/step35-nextn"};

EngineOptions prediction_options(int depth, int max_sequences) {
  EngineOptions options = options_with(Drafts::kNone, depth, max_sequences);
  options.speculation.prediction = Prediction::kOn;
  return options;
}

std::vector<Request> requests_for(const Model& model, int n_prompts) {
  std::vector<Request> requests = repeating_requests(n_prompts);
  for (Request& r : requests) {
    for (TokenId& token : r.prompt) token %= model.n_vocab();
  }
  return requests;
}

Results plain(const std::string& name, const std::vector<Request>& requests) {
  Engine engine(open_shipped("tests/data/" + name), options_with(Drafts::kNone, 0, 4));
  return results_of(engine, requests);
}

TEST_CASE("a prediction layer changes no text, at any depth and number of sequences") {
  for (const std::string name : kPredictingModels) {
    const std::vector<Request> requests = requests_for(*open_shipped("tests/data/" + name), full() ? 12 : 3);
    const Results expected = plain(name, requests);
    for (const int depth : {0, 1, 3, 8}) {
      for (const int n : {1, 4, 9}) {
        if (!full() && n != (depth == 0 ? 4 : depth == 3 ? 1 : 9)) continue;
        CAPTURE(name);
        CAPTURE(depth);
        CAPTURE(n);
        Engine engine(open_shipped("tests/data/" + name), prediction_options(depth, n));
        REQUIRE(engine.speculator()->draft() != nullptr);
        check_same_results(results_of(engine, requests), expected);
        if (depth > 0) CHECK(engine.scheduler().stats().drafts.proposed > 0);
        check_blocks_returned(engine);
      }
    }
  }
}

TEST_CASE("a prediction layer changes no text when blocks run out, and with cached prefixes and choices") {
  int64_t preemptions = 0;
  for (const std::string name : kPredictingModels) {
    CAPTURE(name);
    std::vector<Request> requests = requests_for(*open_shipped("tests/data/" + name), 3);
    requests.front().choices = {1000, 1001};
    const Results expected = plain(name, requests);
    for (const int64_t tokens : {192, 256, 384}) {
      CAPTURE(tokens);
      EngineOptions options = prediction_options(4, 6);
      options.cache_tokens = tokens;
      Engine engine(open_shipped("tests/data/" + name), options);
      check_same_results(results_of(engine, requests), expected);
      preemptions += engine.scheduler().stats().preemptions;
      check_blocks_returned(engine);
    }
    Engine engine(open_shipped("tests/data/" + name), prediction_options(4, 6));
    check_same_results(results_of(engine, requests), expected);
    for (Request& r : requests) r.id += 5000;
    for (RequestId& choice : requests.front().choices) choice += 5000;
    Results again = results_of(engine, requests);
    for (const auto& [id, result] : expected) CHECK(again.at(id + 5000).tokens == result.tokens);
  }
  CHECK(preemptions > 0);  // few in models whose windows free blocks
}

// One sequence on a runner of its own, without a scheduler.
class ByHand {
 public:
  ByHand(const std::shared_ptr<Model>& model, const RunnerOptions& options)
      : runner_(model, options), inputs_(options.capacity) {
    for (int32_t i = 0; i < 8; ++i) table_.push_back(i);
  }
  // Computes the tokens after those so far, each with its state if the model is a prediction layer.
  void run(std::span<const TokenId> tokens, std::span<const float> states = {}) {
    inputs_.clear();
    const std::vector<std::span<const int32_t>> tables(static_cast<size_t>(inputs_.capacity().groups), table_);
    const int n = static_cast<int>(tokens.size());
    const int sequence = inputs_.add_sequence(tables, position_ + n);
    for (int i = 0; i < n; ++i) {
      const int row = inputs_.add_token(sequence, tokens[i], position_ + i, i + 1 == n);
      if (!states.empty()) inputs_.set_hidden(row, states.subspan(states.size() / n * i, states.size() / n));
    }
    for (int i = 0; i + 1 < n && inputs_.capacity().outputs > 1; ++i) inputs_.add_hidden_output(i);
    runner_.run(inputs_);
    position_ += n;
  }
  TokenId likeliest() const {
    const auto logits = runner_.logits(0);
    return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
  // The state of the last token, which is the first output.
  std::span<const float> last_state() const { return runner_.state(0); }
  const ModelRunner& runner() const { return runner_; }

 private:
  ModelRunner runner_;
  StepInputs inputs_;
  std::vector<int32_t> table_;
  int position_ = 0;
};

TEST_CASE("drafts are the layer's likeliest guesses, first from the target's states and then from its own") {
  for (const std::string name : kPredictingModels) {
    CAPTURE(name);
    const std::shared_ptr<Model> model = open_shipped("tests/data/" + name);
    EngineOptions options = prediction_options(0, 1);
    options.opened = open_devices(options);
    Engine engine(model, options_with(Drafts::kNone, 0, 1));
    Request request = make_request(1, 20, 12);
    for (TokenId& token : request.prompt) token %= model->n_vocab();
    request.sampling.temperature = 0;
    REQUIRE(engine.submit(std::move(request)));
    while (engine.scheduler().running().empty() || engine.scheduler().running()[0]->generated().size() < 3)
      engine.step();
    Sequence& sequence = *engine.scheduler().running()[0];
    const std::span<const TokenId> known = sequence.known_tokens();
    const auto n = known.size();

    options = with_prediction(options, *model);
    RunnerOptions of_target = runner_options(model, options, nullptr), of_layer = draft_runner_options(options);
    ByHand target(model, of_target), layer(options.speculation.draft, of_layer);
    target.run(known.first(n - 1));
    std::vector<float> states;
    std::vector<int> outputs(n - 1);
    for (size_t i = 0; i + 1 < n; ++i) outputs[i] = i + 2 == n ? 0 : static_cast<int>(i) + 1;
    for (const int output : outputs) {
      const auto state = target.runner().state(output);
      states.insert(states.end(), state.begin(), state.end());
    }
    std::vector<TokenId> expected;
    layer.run(known.subspan(1), states);
    for (int i = 0; i < 3; ++i) {
      if (i > 0)
        layer.run(std::vector{expected.back()},
                  std::vector<float>(layer.last_state().begin(), layer.last_state().end()));
      expected.push_back(layer.likeliest());
    }

    const auto draft = load_draft(options, of_layer, engine.scheduler().config());
    StepPlan plan;
    plan.sequences.push_back({.sequence = &sequence, .n_tokens = static_cast<int32_t>(n) - 1});
    draft->see(plan, target.runner(), outputs);
    const std::vector<DraftModel::Wish> wishes = {{&sequence, 3}};
    for (int again = 0; again < 2; ++again) {  // the second time, none of its own states are left
      CHECK(draft->draft(wishes, 0, INT32_MAX, [](int, int) {})[0] == expected);
    }
  }
}

TEST_CASE("a model without a prediction layer is an error only if one was requested") {
  EngineOptions options = small_options();
  options.speculation.prediction = Prediction::kAuto;
  Engine engine(open_small("qwen3moe"), options);
  CHECK(engine.speculator() == nullptr);
  options.speculation.prediction = Prediction::kOn;
  CHECK_THROWS_WITH_AS(Engine(open_small("qwen3moe"), options), doctest::Contains("prediction layer"), Error);
  options.speculation.draft = open_small("qwen3moe");
  CHECK_THROWS_WITH_AS(Engine(open_small("glm4moe-nextn"), options), doctest::Contains("Choose one"), Error);
}

TEST_CASE("hidden states are kept up to a bound, and dropped from a rejected token on") {
  HiddenStates states;
  const auto row = [](int64_t i) { return std::vector<float>{static_cast<float>(i), 1}; };
  for (int64_t i = 5; i < 9; ++i) states.add(1, i, row(i));
  CHECK(states.first(1) == 5);
  CHECK(states.end(1) == 9);
  states.add(1, 7, row(70));
  CHECK(states.end(1) == 8);
  CHECK(states.at(1, 7)[0] == 70);
  CHECK(states.at(1, 6)[0] == 6);
  states.add(1, 20, row(20));  // after a gap
  CHECK(states.first(1) == 20);
  for (int64_t i = 21; i < 20 + 2 * HiddenStates::kMostRows; ++i) states.add(1, i, row(i));
  CHECK(states.end(1) - states.first(1) == HiddenStates::kMostRows);
  CHECK(states.at(1, states.first(1))[0] == static_cast<float>(states.first(1)));
  CHECK(states.end(2) == 0);
  states.forget(1);
  CHECK(states.end(1) == 0);
}

}  // namespace
}  // namespace infer
