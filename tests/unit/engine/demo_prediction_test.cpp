// The demo model with a prediction layer (scripts/train_demo/predict.py) writes what the demo model writes, and guesses
// most of it.
#include <fstream>
#include <nlohmann/json.hpp>

#include "src/text/prompt_tokens.h"
#include "tests/support/shipped_models.h"
#include "tests/unit/engine/speculation_world.h"

namespace infer {
namespace {

using namespace infer::test;

constexpr int kDepth = 4;
constexpr double kLeastAcceptance = 0.9;

// One request for each recorded answer.
std::vector<Request> recorded_requests(const Tokenizer& tokenizer) {
  std::ifstream file(INFER_SOURCE_DIR "/tests/data/demo_answers.json");
  std::vector<Request> requests;
  for (const nlohmann::json& entry : nlohmann::json::parse(file)) {
    Request& request = requests.emplace_back();
    request.id = requests.size();
    request.prompt = encode_plain_prompt(tokenizer, entry["prompt"].get<std::string>());
    request.sampling.temperature = 0;
    request.max_new_tokens = 100;
  }
  return requests;
}

TEST_CASE("the demo model's own layer guesses most of its answers and changes none") {
  Engine plain(open_shipped("models/infer-demo-5m-q8_0"), options_with(Drafts::kNone, 0, 8));
  const std::vector<Request> requests = recorded_requests(plain.tokenizer());
  REQUIRE(requests.size() >= 30);
  EngineOptions options = options_with(Drafts::kNone, kDepth, 8);
  options.speculation.prediction = Prediction::kOn;
  Engine engine(open_shipped("models/infer-demo-5m-mtp-q8_0"), options);
  check_same_results(results_of(engine, requests), results_of(plain, requests));
  const DraftCounts drafts = engine.scheduler().stats().drafts;
  MESSAGE(concat(drafts.accepted, " of ", drafts.proposed, " drafts accepted"));
  CHECK(drafts.proposed > 500);
  CHECK(static_cast<double>(drafts.accepted) >= kLeastAcceptance * static_cast<double>(drafts.proposed));
  check_blocks_returned(engine);
}

}  // namespace
}  // namespace infer
