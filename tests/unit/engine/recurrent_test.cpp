// Models with recurrent layers, latent or sparse attention: a text has the same bits however it is split into steps,
// whatever else is in the batch, and whether its prefix comes from the cache, another sequence or a checkpoint.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "backends/registry.h"
#include "ggml-like/error.h"
#include "tests/support/island_device.h"
#include "tests/support/shipped_models.h"
#include "tests/unit/engine/engine_world.h"

namespace infer {
namespace {

using namespace infer::test;

// Delta-net, Mamba-2 and Mamba layers, each mixed with attention; latent attention; index keys with a latent cache and
// with keys and values; a window, compressed entries with index keys, and the states of their pools.
constexpr const char* kRecurrentModels[] = {"qwen35-nextn", "nemotron_h", "jamba",    "deepseek2-nextn",
                                            "glm-dsa",      "minimax-m3", "deepseek4"};

using Rng = std::mt19937;
int draw(Rng& rng, int low, int high) { return low + static_cast<int>(rng() % static_cast<unsigned>(high - low + 1)); }

// Two requests in three begin with one of three texts; all repeat themselves, so that look-up has drafts to propose.
Request random_request(Rng& rng, RequestId id) {
  Request request;
  request.id = id;
  const int text = draw(rng, 0, 3), shared = text < 3 ? draw(rng, 20, 100) : 0, length = shared + draw(rng, 1, 30);
  for (int i = 0; i < length; ++i) {
    const int once = i < shared ? i % 23 + 31 * text : i % 7 + draw(rng, 0, 1);
    request.prompt.push_back(3 + once * 5 % 250);
  }
  request.max_new_tokens = draw(rng, 1, 40);
  request.ignore_eog = true;
  request.sampling.temperature = draw(rng, 0, 1) == 0 ? 0.0f : 0.3f;
  request.sampling.seed = id;
  return request;
}

// What each request, or choice of one, generates alone, in one chunk and without a cache.
std::map<RequestId, Answer> alone(const std::string& name, const std::vector<std::pair<int, Request>>& requests) {
  EngineOptions options = small_options();
  std::map<RequestId, Answer> answers;
  for (const auto& [start, original] : requests) {
    for (size_t i = 0; i <= original.choices.size(); ++i) {
      Request request = original;
      request.id = i == 0 ? original.id : original.choices[i - 1];
      request.sampling.seed = original.sampling.seed.value() + i;
      request.choices.clear();
      request.reuse_prefix = false;
      Engine engine(open_small(name), options);
      answers[request.id] = run_all(engine, {{0, request}})[request.id];
    }
  }
  return answers;
}

}  // namespace

TEST_CASE(
    "a recurrent model, or one with latent or sparse attention, gives the same bits in any batch, chunks, prefix hits, "
    "forks, preemptions and drafts") {
  int64_t hits = 0, preemptions = 0, accepted = 0, rejected = 0, evictions = 0;
  for (const std::string name : kRecurrentModels) {
    CAPTURE(name);
    Rng rng(7);
    for (int round = 0; round < (full() ? 6 : 3); ++round) {
      CAPTURE(round);
      std::vector<std::pair<int, Request>> requests;
      int start = 0;
      for (RequestId id = 10; id <= 80; id += 10) {
        Request request = random_request(rng, id);
        if (draw(rng, 0, 3) == 0) request.choices = {id + 1, id + 2};
        requests.emplace_back(start += draw(rng, 0, 9), request);
      }
      EngineOptions options = small_options();
      const bool short_of_blocks = round % 2 == 0;
      options.max_sequences = short_of_blocks ? draw(rng, 3, 5) : draw(rng, 1, 5);
      options.step_tokens = draw(rng, 5, 90);
      options.n_threads = draw(rng, 1, 3);
      options.cache_tokens = short_of_blocks ? 192 : 0;
      options.speculation.lookup = round >= 1;
      options.speculation.fixed = draw(rng, 1, 4);
      Engine engine(open_small(name), options);
      const auto found = run_all(engine, requests);
      const auto expected = alone(name, requests);
      REQUIRE(found.size() == expected.size());
      for (const auto& [id, answer] : expected) {
        CAPTURE(id);
        check_same(answer, found.at(id));
      }
      const SchedulerStats& stats = engine.scheduler().stats();
      hits += stats.prefix_hits;
      preemptions += stats.preemptions;
      accepted += stats.drafts.accepted;
      rejected += stats.drafts.proposed - stats.drafts.accepted;
      const KvCache& cache = engine.scheduler().cache();
      for (size_t g = 0; g < cache.groups().size(); ++g) {
        CHECK(cache.pool(g).stats().used == 0);
        if (cache.groups()[g].kind == CacheKind::kState) evictions += cache.pool(g).stats().evictions;
      }
    }
  }
  // All of these events occurred.
  CHECK(hits > 0);
  CHECK(preemptions > 0);
  CHECK(accepted > 0);
  CHECK(rejected > 0);
  CHECK(evictions > 0);
}

TEST_CASE("a turn of a conversation continues from its recurrent state, compressed vectors or index keys") {
  for (const std::string name : kRecurrentModels) {
    CAPTURE(name);
    Engine engine(open_small(name), small_options());
    Rng rng(3);
    Request request = random_request(rng, 1);
    request.conversation = 5;
    request.max_new_tokens = 20;
    Answer answer = run_all(engine, {{0, request}})[1];
    request.prompt.insert(request.prompt.end(), answer.tokens.begin(), answer.tokens.end());
    for (int i = 0; i < 9; ++i) request.prompt.push_back(7 + i);
    request.id = 2;
    const int64_t before = engine.scheduler().stats().computed_tokens;
    answer = run_all(engine, {{0, request}})[2];
    CHECK(engine.scheduler().stats().computed_tokens - before <= 1 + 9 + 20);
    check_same(alone(name, {{0, request}}).at(2), answer);
  }
}

TEST_CASE("recurrent states in a device's own memory are copied there for prefix hits, forks and rejected drafts") {
  int64_t hits = 0, rejected = 0;
  for (const std::string name : kRecurrentModels) {
    CAPTURE(name);
    Rng rng(11);
    std::vector<std::pair<int, Request>> requests;
    for (RequestId id = 10; id <= 60; id += 10) {
      Request request = random_request(rng, id);
      if (id % 20 == 0) request.choices = {id + 1, id + 2};
      requests.emplace_back(static_cast<int>(id), request);
    }
    const auto expected = alone(name, requests);
    for (const int n_gpu_layers : {2, kAllLayers}) {
      CAPTURE(n_gpu_layers);
      EngineOptions options = small_options();
      options.opened = std::make_shared<DeviceSet>();
      options.opened->devices.push_back(open_device("cpu", {.n_threads = 1}));
      options.opened->devices.push_back(
          make_island("island0", open_device("cpu", {.n_threads = 1}), std::make_shared<IslandState>()));
      options.opened->of_layers = {1};
      options.placement.n_gpu_layers = n_gpu_layers;
      options.speculation.lookup = true;
      options.speculation.fixed = 2;
      Engine engine(open_small(name), options);
      const auto found = run_all(engine, requests);
      REQUIRE(found.size() == expected.size());
      for (const auto& [id, answer] : expected) {
        CAPTURE(id);
        check_same(answer, found.at(id));
      }
      const auto groups = engine.scheduler().cache().groups();
      const bool has_states = std::any_of(groups.begin(), groups.end(),
                                          [](const CacheGroup& group) { return group.kind == CacheKind::kState; });
      const std::vector<DeviceUse>& use = engine.runner().memory_use();
      if (n_gpu_layers == kAllLayers) CHECK((use[1].states > 0) == has_states);
      if (n_gpu_layers == kAllLayers) CHECK(use[0].states == 0);
      hits += engine.scheduler().stats().prefix_hits;
      rejected += engine.scheduler().stats().drafts.proposed - engine.scheduler().stats().drafts.accepted;
    }
  }
  CHECK(hits > 0);
  CHECK(rejected > 0);
}

TEST_CASE("recurrent states stay on the host when the device of their layers has no operations for them") {
  const auto state = std::make_shared<IslandState>();
  state->lacks = {Op::kDeltaRule};
  EngineOptions options = small_options();
  options.opened = std::make_shared<DeviceSet>();
  options.opened->devices.push_back(open_device("cpu", {.n_threads = 1}));
  options.opened->devices.push_back(make_island("island0", open_device("cpu", {.n_threads = 1}), state));
  options.opened->of_layers = {1};
  options.placement.n_gpu_layers = kAllLayers;
  std::vector<std::string> notes;
  options.note = [&](const std::string& line) { notes.push_back(line); };
  Rng rng(5);
  const Request request = random_request(rng, 4);
  Engine engine(open_small("qwen35-nextn"), options);
  check_same(alone("qwen35-nextn", {{0, request}}).at(4), run_all(engine, {{0, request}})[4]);
  REQUIRE(notes.size() >= 2);
  CHECK(notes[0].find("short_conv") != std::string::npos);
  const DeviceUse& island = engine.runner().memory_use()[1];
  CHECK(state->used == island.needed());
  options.strict_offload = true;
  CHECK_THROWS_WITH_AS(Engine(open_small("qwen35-nextn"), options), doctest::Contains("short_conv"), Error);
}

TEST_CASE("index keys and what sparse attention reads stay on the host when the device cannot select positions") {
  const auto state = std::make_shared<IslandState>();
  state->lacks = {Op::kSelectPositions};
  EngineOptions options = small_options();
  options.opened = std::make_shared<DeviceSet>();
  options.opened->devices.push_back(open_device("cpu", {.n_threads = 1}));
  options.opened->devices.push_back(make_island("island0", open_device("cpu", {.n_threads = 1}), state));
  options.opened->of_layers = {1};
  options.placement.n_gpu_layers = kAllLayers;
  Rng rng(5);
  const Request request = random_request(rng, 4);
  for (const std::string name : {"glm-dsa", "minimax-m3"}) {
    CAPTURE(name);
    std::vector<std::string> notes;
    options.note = [&](const std::string& line) { notes.push_back(line); };
    Engine engine(open_small(name), options);
    check_same(alone(name, {{0, request}}).at(4), run_all(engine, {{0, request}})[4]);
    const auto names_selection = [](const std::string& note) { return note.find("select_positions") != note.npos; };
    CHECK(std::any_of(notes.begin(), notes.end(), names_selection));
    const DeviceUse& island = engine.runner().memory_use()[1];
    CHECK(state->used == island.needed());
    // Only layer 0 of minimax-m3 sees all positions.
    CHECK((island.cache > 0) == (name == "minimax-m3"));
  }
}

TEST_CASE("a draft model with recurrent layers is refused") {
  EngineOptions options = small_options();
  options.speculation.draft = open_small("jamba");
  CHECK_THROWS_WITH_AS(Engine(open_small("qwen35-nextn"), options), doctest::Contains("recurrent layers"), Error);
}

}  // namespace infer
