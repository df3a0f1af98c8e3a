// Text that a grammar forces is computed in fewer steps and is bit-identical to that computed without jump-forward.
#include "src/text/grammar/gbnf.h"
#include "src/text/grammar/grammar_mask.h"
#include "src/text/grammar/json_schema.h"
#include "tests/unit/engine/speculation_world.h"

namespace infer {
namespace {

using namespace infer::test;

constexpr const char* kSchema = R"({"type": "object", "required": ["surname", "kinds", "married"], "properties": {
  "surname": {"type": "string", "maxLength": 3}, "kinds": {"type": "array", "items": {"enum": ["animal", "angular"]},
  "maxItems": 3}, "married": {"type": "boolean"}}, "additionalProperties": false})";
constexpr const char* kGrammar =
    "root ::= item (\"; then \" item){2} \".\"\nitem ::= \"the number \" [0-9]{1,3} \" of 9\"";

// Masks over the vocabulary of the tiny model: bytes, and words like w300.
struct Masks {
  Masks() {
    const Tokenizer tokenizer(open_model(kTarget)->vocabulary());
    const auto vocabulary = grammar::GrammarVocabulary::of(tokenizer);
    const auto add = [&](const std::shared_ptr<const grammar::Grammar>& grammar) {
      all.push_back(std::make_shared<grammar::GrammarMask>(std::make_shared<grammar::MaskCache>(grammar, vocabulary)));
    };
    grammar::SchemaOptions schema;
    for (const bool compact : {true, false}) {
      schema.compact = compact;
      add(grammar::parse_json_schema(kSchema, schema));
    }
    add(grammar::parse_gbnf(kGrammar));
  }
  std::vector<std::shared_ptr<const TokenMask>> all;
};

std::vector<Request> masked_requests(int n) {
  static const Masks masks;
  constexpr float kTemperatures[] = {0, 1, 3};
  std::vector<Request> requests;
  for (int i = 0; i < n; ++i) {
    Request request = make_request(static_cast<RequestId>(i + 1), 9 + i % 5, 120, 20 + i);
    request.ignore_eog = false;
    request.mask = masks.all[static_cast<size_t>(i) % masks.all.size()];
    request.sampling.temperature = kTemperatures[i / 3 % 3];
    request.report_logits = i % 2 == 0;
    requests.push_back(std::move(request));
  }
  return requests;
}

EngineOptions jumping(Drafts drafts, int depth, int max_sequences) {
  EngineOptions options = options_with(drafts, depth, max_sequences);
  options.speculation.jump_forward = true;
  return options;
}

Results results_without(const std::vector<Request>& requests, int64_t* steps = nullptr) {
  EngineOptions options = options_with(Drafts::kNone, 0, 1);
  options.speculation.jump_forward = false;
  Engine engine(open_model(kTarget), options);
  const Results results = results_of(engine, requests);
  CHECK(engine.scheduler().stats().drafts.proposed == 0);
  if (steps) *steps = engine.scheduler().stats().steps;
  return results;
}

TEST_CASE("jump-forward changes no text, and each accepted token saves a step") {
  const std::vector<Request> requests = masked_requests(full() ? 90 : 18);
  int64_t steps = 0;
  const Results expected = results_without(requests, &steps);
  for (const int depth : {0, 1, 4, 32}) {  // 0: as many as pay
    for (const int n : {1, 16}) {
      CAPTURE(depth);
      CAPTURE(n);
      Engine engine(open_model(kTarget), jumping(Drafts::kNone, depth, n));
      check_same_results(results_of(engine, requests), expected);
      const SchedulerStats& stats = engine.scheduler().stats();
      if (n == 1) CHECK(stats.steps + stats.drafts.accepted == steps);
      if (depth > 0) CHECK(stats.drafts.accepted > 0);
      // A third of these texts is forced.
      if (depth == 32 && n == 1) CHECK(4 * stats.steps < 3 * steps);
      check_blocks_returned(engine);
    }
  }
}

TEST_CASE("jump-forward beside look-up and a draft model, with choices, and when blocks run out") {
  std::vector<Request> requests = masked_requests(12);
  for (size_t i = 0; i < requests.size(); i += 4) requests[i].choices = {100 + i, 200 + i};
  const Results expected = results_without(requests);
  for (const Drafts drafts : {Drafts::kNone, Drafts::kLookup, Drafts::kModel, Drafts::kBoth}) {
    for (const int64_t cache_tokens : {0, 320}) {
      CAPTURE(name_of(drafts));
      CAPTURE(cache_tokens);
      EngineOptions options = jumping(drafts, 6, 8);
      if (cache_tokens > 0) options.cache_tokens = cache_tokens;
      Engine engine(open_model(kTarget), options);
      check_same_results(results_of(engine, requests), expected);
      const SchedulerStats& stats = engine.scheduler().stats();
      CHECK(stats.drafts.accepted > 0);
      CHECK((stats.preemptions > 0) == (cache_tokens > 0));
      check_blocks_returned(engine);
    }
  }
}

TEST_CASE("jump-forward: a request may forbid it, and limit it") {
  std::vector<Request> requests = masked_requests(3);
  const Results expected = results_without(requests);
  for (const int most : {0, 2}) {
    for (Request& request : requests) request.max_drafts = most;
    Engine engine(open_model(kTarget), jumping(Drafts::kNone, 8, 1));
    check_same_results(results_of(engine, requests), expected);
    const DraftCounts& drafts = engine.scheduler().stats().drafts;
    CHECK((drafts.proposed > 0) == (most > 0));
    CHECK(drafts.proposed <= most * drafts.verifications);
  }
}

}  // namespace
}  // namespace infer
