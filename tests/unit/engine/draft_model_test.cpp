// A draft model and a target's sequences, called as the speculator calls it.
#include "src/engine/draft/draft_model.h"

#include <doctest/doctest.h>

#include "ggml-like/error.h"
#include "src/engine/draft/load_draft.h"
#include "tests/support/island_device.h"
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

TEST_CASE("a draft computes no more of a prompt at a time than it may, and its drafts are then the same") {
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

// A model and its draft on a device with this much memory, with all layers there unless `n_gpu_layers` says otherwise.
struct Shared {
  std::shared_ptr<IslandState> state = std::make_shared<IslandState>();
  EngineOptions options = small_options();

  explicit Shared(uint64_t budget = uint64_t{1} << 40, int n_gpu_layers = kAllLayers) {
    state->budget = budget;
    options.opened = std::make_shared<DeviceSet>();
    options.opened->devices.push_back(open_device("cpu", {.n_threads = 1}));
    options.opened->devices.push_back(make_island("island0", open_device("cpu", {.n_threads = 1}), state));
    options.opened->of_layers = {1};
    options.placement.n_gpu_layers = n_gpu_layers;
    options.strict_offload = true;
    options.speculation.draft = open_model("Q4_K_M");
    options.speculation.draft_gpu_layers = kAllLayers;
  }
  uint64_t of_model() const { return plan_memory(open_model("Q8_0"), options)[1].needed(); }
  uint64_t of_draft() const { return plan_draft_memory(options)[1].needed(); }
};

TEST_CASE("the memory of a draft is planned: both fit exactly, and one byte less is one clear error") {
  const uint64_t both = Shared().of_model() + Shared().of_draft();
  const Shared enough(both);
  const Engine engine(open_model("Q8_0"), enough.options);
  CHECK(enough.state->used == both);
  const Shared short_of_one(both - 1);
  CHECK_THROWS_WITH_AS(Engine(open_model("Q8_0"), short_of_one.options),
                       doctest::Contains("The model fits in memory, but the draft model does not"), Error);
  CHECK(short_of_one.state->live_buffers == 0);
}

TEST_CASE("auto leaves room for the draft, which stays whole on the device") {
  const auto layers = [](uint64_t budget, bool with_draft) {
    Shared shared(budget, kAutoLayers);
    if (!with_draft) shared.options.speculation = {};
    Engine engine(open_model("Q8_0"), shared.options);
    if (with_draft) CHECK(engine.speculator()->draft()->runner().memory_use()[1].n_layers == 2);
    return engine.runner().memory_use()[1].n_layers;
  };
  // With the margin of a tenth.
  const uint64_t model = Shared().of_model(), draft = Shared().of_draft();
  CHECK(layers((model + draft) / 9 * 10 + 100, true) == 2);
  CHECK(layers(model / 9 * 10 + 100, false) == 2);
  CHECK(layers((model + draft / 2) / 9 * 10, true) < 2);
}

}  // namespace
}  // namespace infer::test
