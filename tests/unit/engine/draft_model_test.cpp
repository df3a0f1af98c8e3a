// A draft model beside a target's sequences, called as the speculator calls it.
#include "src/engine/draft/draft_model.h"

#include <doctest/doctest.h>

#include "src/engine/draft/load_draft.h"
#include "tests/unit/engine/engine_world.h"

namespace infer::test {
namespace {

struct Target {
  EngineOptions options = small_options();
  std::unique_ptr<Engine> engine;

  // Runs the requests until each has a token.
  explicit Target(const std::vector<Request>& requests) {
    options.max_sequences = 4;
    options.speculation.draft = open_model("Q4_K_M");
    options.opened = open_devices(options);
    EngineOptions alone = options;
    alone.speculation = {};
    engine = std::make_unique<Engine>(open_model("Q8_0"), alone);
    for (const Request& request : requests) REQUIRE(engine->submit(request));
    while (!all_have_tokens()) engine->step();
  }
  bool all_have_tokens() const {
    const auto running = engine->scheduler().running();
    return engine->scheduler().waiting().empty() &&
           std::all_of(running.begin(), running.end(), [](const Sequence* s) { return !s->generated().empty(); });
  }
  std::unique_ptr<DraftModel> load() const {
    return load_draft(options, draft_runner_options(options), engine->scheduler().config());
  }
  const Sequence* sequence(RequestId id) const { return engine->scheduler().find(id); }
};

TEST_CASE("a draft computes no more of a prompt at a time than it may, and drafts the same then") {
  const Target target({make_request(1, 200, 100)});
  constexpr int kDepth = 4, kMost = 48;
  const std::vector<DraftModel::Wish> wishes = {{target.sequence(1), kDepth}};
  const auto at_once = target.load()->draft(wishes, 0, INT32_MAX, [](int, int) {});
  REQUIRE(at_once[0].size() == kDepth);

  const auto draft = target.load();
  int n_calls = 0, n_rows = 0;
  std::vector<std::vector<TokenId>> drafts(1);
  while (drafts[0].empty()) {
    int rows_of_call = 0;
    REQUIRE(++n_calls < 20);
    drafts = draft->draft(wishes, 0, kMost, [&](int rows, int n_drafts) {
      rows_of_call += n_drafts == 0 ? rows : 0;
      n_rows += rows;
    });
    CHECK(rows_of_call <= kMost);
    if (drafts[0].empty()) CHECK(draft->lag(*target.sequence(1)) == 200 - n_rows);
  }
  CHECK(n_calls == (200 + kMost) / kMost);
  CHECK(drafts == at_once);
}

TEST_CASE("a sequence whose prompt the draft has computed is not kept waiting by the prompt of another") {
  const Target target({make_request(1, 20, 100), make_request(2, 300, 100)});
  const auto draft = target.load();
  const DraftModel::Wish first = {target.sequence(1), 3}, second = {target.sequence(2), 3};
  const auto ignore = [](int, int) {};
  REQUIRE(draft->draft(std::vector{first}, 0, INT32_MAX, ignore)[0].size() == 3);
  int n_rows = 0;
  const auto drafts = draft->draft(std::vector{first, second}, 0, 32, [&](int rows, int) { n_rows += rows; });
  CHECK(drafts[0].size() == 3);
  CHECK(drafts[1].empty());
  CHECK(n_rows <= 32 + 3);
  CHECK(draft->lag(*target.sequence(2)) == 300 - 32);
}

}  // namespace
}  // namespace infer::test
