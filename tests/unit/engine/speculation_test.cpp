// Engines that propose drafts themselves: every text is bit-identical to the text without drafts.
#include "tests/unit/engine/speculation_world.h"

namespace infer {
namespace {

using namespace infer::test;

TEST_CASE("drafts change no text, whatever proposes them, at any temperature, depth and number of sequences") {
  const std::vector<Request> requests = repeating_requests(full() ? 100 : 4);
  const Results expected = plain_results(requests);
  const std::vector<int> depths = full() ? std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8} : std::vector<int>{0, 1, 3, 8};
  for (const Drafts drafts : kAllDrafts) {
    for (const int depth : depths) {
      for (const int n : {1, 4, 16}) {
        if (!full() && n != (depth == 0 ? 4 : depth == 3 ? 1 : 16)) continue;
        CAPTURE(name_of(drafts));
        CAPTURE(depth);
        CAPTURE(n);
        Engine engine(open_model(kTarget), options_with(drafts, depth, n));
        check_same_results(results_of(engine, requests), expected);
        const SchedulerStats& stats = engine.scheduler().stats();
        CHECK(stats.drafts.accepted <= stats.drafts.proposed);
        if (depth > 0) CHECK(stats.drafts.accepted > 0);
        // Weights in few bits and in more agree on most tokens.
        if (depth > 0 && drafts == Drafts::kModel) CHECK(2 * stats.drafts.accepted > stats.drafts.proposed / depth);
        check_blocks_returned(engine);
      }
    }
  }
}

TEST_CASE("drafts change no text when the blocks of the target, or of its draft, run out") {
  const std::vector<Request> requests = repeating_requests(full() ? 34 : 4);
  const Results expected = plain_results(requests);
  for (const Drafts drafts : kAllDrafts) {
    int64_t of_target = 0, of_draft = 0;
    for (const int64_t tokens : {160, 192, 224, 256, 288, 320, 352, 384}) {
      if (!full() && tokens % 96 != 0) continue;
      CAPTURE(name_of(drafts));
      CAPTURE(tokens);
      EngineOptions options = options_with(drafts, 5, 8);
      options.cache_tokens = tokens;
      Engine engine(open_model(kTarget), options);
      check_same_results(results_of(engine, requests), expected);
      of_target += engine.scheduler().stats().preemptions;
      if (engine.speculator()->draft()) of_draft += engine.speculator()->draft()->scheduler().stats().preemptions;
      CHECK(engine.scheduler().stats().drafts.accepted > 0);
      check_blocks_returned(engine);
    }
    CHECK(of_target > 0);
    CHECK((of_draft > 0) == (drafts != Drafts::kLookup));
  }
}

TEST_CASE("look-up ignores requests with another salt, and those that share nothing") {
  // The second request has the text of the first as its prompt's end would continue it.
  Request first = make_request(1, 30, 20), second = first;
  second.id = 2;
  const Results expected = plain_results({first, second});
  const auto drafts_of_second = [&](const std::string& salt, bool reuse) {
    Engine engine(open_model(kTarget), options_with(Drafts::kLookup, 4, 1));
    check_same_results(results_of(engine, {first}), {{1, expected.at(1)}});
    const int64_t before = engine.scheduler().stats().drafts.accepted;
    Request r = second;
    r.cache_salt = salt;
    r.reuse_prefix = reuse;
    check_same_results(results_of(engine, {r}), {{2, expected.at(2)}});
    return engine.scheduler().stats().drafts.accepted - before;
  };
  Engine alone(open_model(kTarget), options_with(Drafts::kLookup, 4, 1));
  results_of(alone, {second});
  const int64_t by_itself = alone.scheduler().stats().drafts.accepted;
  CHECK(drafts_of_second("", true) > by_itself + 8);
  CHECK(drafts_of_second("other", true) == by_itself);
  CHECK(drafts_of_second("", false) == by_itself);
}

TEST_CASE("drafts below the minimum probability, or fewer than the minimum number, are not proposed") {
  const std::vector<Request> requests = repeating_requests(2);
  const Results expected = plain_results(requests);
  const auto n_proposed = [&](double least_probability, int least) {
    EngineOptions options = options_with(Drafts::kModel, 6, 4);
    options.speculation.least_probability = least_probability;
    options.speculation.least = least;
    Engine engine(open_model(kTarget), options);
    check_same_results(results_of(engine, requests), expected);
    return engine.scheduler().stats().drafts.proposed;
  };
  const int64_t all = n_proposed(0, 0), probable = n_proposed(0.004, 0), many = n_proposed(0.004, 2);
  CHECK(probable < all);
  CHECK(many < probable);
  CHECK(many > 0);
}

TEST_CASE("a draft that does not fit the model is refused with one sentence") {
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
