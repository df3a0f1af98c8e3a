// Models on several devices: the CPU and islands (tests/support/island_device.h), which use the CPU's kernels in memory
// of their own. The placement of a model's parts must not change a bit.
#include <doctest/doctest.h>

#include <cstring>

#include "ggml-like/error.h"
#include "src/engine/engine.h"
#include "tests/support/island_device.h"
#include "tests/support/shipped_models.h"

using namespace infer;
using infer::test::IslandState;

namespace {

struct Islands {
  std::vector<std::shared_ptr<IslandState>> states;
  std::shared_ptr<DeviceSet> devices = std::make_shared<DeviceSet>();

  explicit Islands(int n = 1) {
    devices->devices.push_back(open_device("cpu", {.n_threads = 1}));
    for (int i = 0; i < n; ++i) states.push_back(std::make_shared<IslandState>());
  }
  // After the states are set.
  std::shared_ptr<DeviceSet> open() {
    for (size_t i = 0; i < states.size(); ++i) {
      const std::string name = "island" + std::to_string(i);
      devices->devices.push_back(test::make_island(name, open_device("cpu", {.n_threads = 1}), states[i]));
      devices->of_layers.push_back(static_cast<int>(i) + 1);
    }
    return devices;
  }
};

EngineOptions options_on(std::shared_ptr<DeviceSet> devices, int n_gpu_layers) {
  EngineOptions options;
  options.opened = std::move(devices);
  options.placement.n_gpu_layers = n_gpu_layers;
  options.context = 96;
  options.max_sequences = 2;
  options.step_tokens = 8;  // prompts take several steps, most of them without outputs
  return options;
}

TensorRule rule(const std::string& part, const std::string& device) {
  return {part + "=" + device, [part](const std::string& name) { return name.find(part) != std::string::npos; },
          device};
}

// The logits of two answers that are computed together, the second with two choices so that a KV block is copied.
std::vector<float> logits_of(Engine& engine) {
  std::vector<float> logits;
  engine.on_logits(
      [&](RequestId, int64_t, std::span<const float> row) { logits.insert(logits.end(), row.begin(), row.end()); });
  for (const RequestId id : {1, 2}) {
    Request request;
    request.id = id;
    for (int i = 0; i < 21 + 20 * static_cast<int>(id - 1); ++i) {
      request.prompt.push_back((i * 7 + static_cast<int>(id)) % engine.model().n_vocab());
    }
    request.max_new_tokens = 4;
    request.ignore_eog = true;
    request.sampling.temperature = 0;
    if (id == 2) request.choices = {3};
    request.report_logits = true;
    REQUIRE(engine.submit(std::move(request)));
  }
  while (!engine.idle()) engine.step();
  return logits;
}

std::vector<float> logits_of(const std::string& model, const EngineOptions& options) {
  Engine engine(test::open_small(model), options);
  return logits_of(engine);
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && !a.empty() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::vector<float> on_cpu(const std::string& model) {
  return logits_of(model, options_on(open_devices({"cpu"}, {.n_threads = 1}), 0));
}

constexpr const char* kSplitModels[] = {"llama-gqa", "qwen2-tied", "qwen3moe", "quant-q4_k", "quant-q8_0"};

}  // namespace

TEST_CASE("any number of layers on a device with its own memory gives the same bits") {
  for (const std::string model : kSplitModels) {
    const std::vector<float> expected = on_cpu(model);
    const int most = placeable_parts(test::open_small(model)->n_layer());
    for (int n = 0; n <= most; ++n) {
      CAPTURE(model);
      CAPTURE(n);
      Islands islands;
      CHECK(same(logits_of(model, options_on(islands.open(), n)), expected));
      const IslandState& seen = *islands.states[0];
      CHECK(seen.live_buffers == 0);
      CHECK((seen.most_used > 0) == (n > 0));
    }
  }
}

TEST_CASE("several devices, by shares and by free memory") {
  const std::string model = "llama-gqa";
  const std::vector<float> expected = on_cpu(model);
  const std::vector<std::vector<double>> splits = {{}, {1, 1}, {3, 1}, {1, 3}, {1, 0}, {0, 1}};
  for (const auto& split : splits) {
    for (int n = 1; n <= 4; ++n) {
      Islands islands(2);
      EngineOptions options = options_on(islands.open(), n);
      options.placement.tensor_split = split;
      CHECK(same(logits_of(model, options), expected));
    }
  }
  // The CPU may be one of them, here between two others.
  Islands islands(2);
  islands.open();
  islands.devices->of_layers = {1, 0, 2};
  EngineOptions options = options_on(islands.devices, kAllLayers);
  CHECK(same(logits_of(model, options), expected));

  Islands unequal(2);
  unequal.states[0]->budget = 3000000;
  unequal.states[1]->budget = 1;
  const auto uses = plan_memory(test::open_small(model), options_on(unequal.open(), kAllLayers));
  CHECK(uses[1].n_layers == 2);
  options = options_on(unequal.devices, kAllLayers);
  options.placement.tensor_split = {1};
  CHECK_THROWS_AS(plan_memory(test::open_small(model), options), Error);
}

TEST_CASE("experts on the CPU need little copying, and their placement changes no bit") {
  const std::string model = "qwen3moe";
  const std::vector<float> expected = on_cpu(model);
  int64_t steps = 0;
  const auto run = [&](int n_cpu_moe, std::vector<TensorRule> rules, DeviceUse* use) {
    Islands islands;
    EngineOptions options = options_on(islands.open(), kAllLayers);
    options.placement.n_cpu_moe = n_cpu_moe;
    options.placement.tensor_rules = std::move(rules);
    Engine engine(test::open_small(model), options);
    CHECK(same(logits_of(engine), expected));
    if (use) *use = engine.runner().memory_use()[0];
    steps = engine.scheduler().stats().steps;
    return islands.states[0]->n_values_to_staging;
  };
  uint64_t experts = 0;
  const auto loaded = test::open_small(model);
  for (const ModelWeight* weight : loaded->weights_of_layer(0)) {
    if (weight->role == WeightRole::kExpert) experts += weight->desc.bytes();
  }
  REQUIRE(experts > 0);
  DeviceUse none, one, all;
  const int64_t copies_none = run(0, {}, &none), copies_one = run(1, {}, &one), copies_all = run(99, {}, &all);
  CHECK(none.weights == 0);
  CHECK(one.guest_weights == experts);
  CHECK(all.guest_weights == 2 * experts);
  CHECK(all.weights == 2 * experts);
  // Per layer and step three values leave the device: the input, the ids of the experts and their weights. The last
  // layer has work only in steps with outputs.
  CHECK(copies_one - copies_none == 3 * steps);
  CHECK(copies_all - copies_one < 3 * steps);
  CHECK((copies_all - copies_one) % 3 == 0);
  run(0, {rule("ffn_down_exps", "cpu")}, nullptr);
  run(1, {rule("blk.0.attn_q", "cpu"), rule("ffn_up_exps", "island0"), rule("output", "cpu")}, nullptr);
  run(0, {rule("token_embd", "cpu"), rule("attn_output", "cpu"), rule("ffn_gate_inp", "cpu")}, nullptr);
}

TEST_CASE("single tensors go to a device while the layers stay on the CPU, biases follow") {
  for (const std::string model : {"qwen2-tied", "quant-q4_k"}) {
    const std::vector<float> expected = on_cpu(model);
    for (const char* part : {"attn_q.weight", "attn_v.weight", "ffn_down", "token_embd", "blk.0."}) {
      CAPTURE(part);
      Islands islands(2);
      EngineOptions options = options_on(islands.open(), 0);
      options.placement.tensor_rules = {rule(part, "island1")};
      CHECK(same(logits_of(model, options), expected));
      const std::vector<DeviceUse> uses = plan_memory(test::open_small(model), options);
      CHECK(uses[1].weights == 0);
      CHECK(uses[2].guest_weights > 0);
    }
  }
  Islands islands;
  EngineOptions options = options_on(islands.open(), 0);
  options.placement.tensor_rules = {rule("ffn_down", "island7")};
  CHECK_THROWS_WITH_AS(plan_memory(test::open_small("llama-gqa"), options), doctest::Contains("cpu, island0"), Error);
  options.placement.tensor_rules = {rule("attn_norm", "island0")};
  CHECK_THROWS_WITH_AS(plan_memory(test::open_small("llama-gqa"), options), doctest::Contains("matrix"), Error);
}

TEST_CASE("allocated memory equals planned memory") {
  for (const std::string model : kSplitModels) {
    for (int n = 0; n <= placeable_parts(test::open_small(model)->n_layer()); ++n) {
      CAPTURE(model);
      CAPTURE(n);
      Islands islands;
      EngineOptions options = options_on(islands.open(), n);
      options.placement.n_cpu_moe = n % 2;
      Engine engine(test::open_small(model), options);
      const DeviceUse& use = engine.runner().memory_use()[1];
      CHECK(islands.states[0]->used == use.needed());
      CHECK(plan_memory(test::open_small(model), options)[1].needed() == use.needed());
      CHECK(islands.states[0]->used == use.needed());
      logits_of(engine);
      CHECK(islands.states[0]->used == use.needed());  // steps allocate nothing
    }
  }
}

TEST_CASE("logits are downloaded through staging memory of the host, which is planned") {
  const std::string model = "llama-gqa";
  const auto vocabulary = static_cast<uint64_t>(test::open_small(model)->n_vocab());
  const auto staging = [&](uint64_t rows, int n_gpu_layers) {
    Islands islands;
    EngineOptions options = options_on(islands.open(), n_gpu_layers);
    options.step_tokens = 64;
    options.logits_bytes = sizeof(float) * vocabulary * rows;
    return plan_memory(test::open_small(model), options)[0].staging;
  };
  CHECK(staging(50, kAllLayers) - staging(0, kAllLayers) >= sizeof(float) * vocabulary * 48);
  CHECK(staging(50, 0) < staging(50, kAllLayers));
}

TEST_CASE("auto places what fits, less a margin, and leaves room for others") {
  const std::string model = "llama-gqa";
  std::vector<uint64_t> needed;  // by number of layers placed
  for (int n = 0; n <= 4; ++n) {
    Islands islands;
    needed.push_back(plan_memory(test::open_small(model), options_on(islands.open(), n))[1].needed());
  }
  CHECK(std::is_sorted(needed.begin(), needed.end()));
  const auto parts = [&](uint64_t budget, uint64_t reserved) {
    Islands islands;
    islands.states[0]->budget = budget;
    EngineOptions options = options_on(islands.open(), kAutoLayers);
    options.reserved = {0, reserved};
    std::string note;
    options.note = [&](const std::string& line) { note += line; };
    Engine engine(test::open_small(model), options);
    const DeviceUse& use = engine.runner().memory_use()[1];
    const int n = use.n_layers + use.has_input + use.has_output;
    const std::string start = concat("[offload] -ngl auto on island0: ", n, " of 4 layers fit; one more would need ");
    CHECK((n == 4 ? note.empty() : note.starts_with(start) && note.find("that island0 has free") != std::string::npos));
    return n;
  };
  for (int n = 0; n <= 4; ++n) {
    CAPTURE(n);
    const uint64_t enough = needed[static_cast<size_t>(n)] * 10 / 9 + 2;
    CHECK(parts(enough, 0) == n);
    if (n > 0) CHECK(parts(enough - 4, 0) == n - 1);
    CHECK(parts(enough + 1000, 1000) <= n);
    CHECK(parts(enough + 1200, 1000) >= n);
  }
}

TEST_CASE("too little memory at load: fewer layers, reported in one line; same answers, no leaks") {
  const std::string model = "llama-gqa";
  const std::vector<float> expected = on_cpu(model);
  int64_t n_allocations = 0;
  {
    Islands islands;
    const Engine engine(test::open_small(model), options_on(islands.open(), kAllLayers));
    n_allocations = islands.states[0]->n_allocations;
  }
  REQUIRE(n_allocations > 20);
  for (const bool ever_after : {false, true}) {
    for (int64_t k = 0; k < n_allocations; ++k) {
      CAPTURE(k);
      CAPTURE(ever_after);
      Islands islands;
      islands.states[0]->fail_at = k;
      islands.states[0]->fails_ever_after = ever_after;
      std::vector<std::string> notes;
      EngineOptions options = options_on(islands.open(), kAllLayers);
      options.note = [&](const std::string& line) { notes.push_back(line); };
      {
        const int left = ever_after ? 0 : 3;
        Engine engine(test::open_small(model), options);
        REQUIRE(notes.size() == 1);
        CHECK(notes[0].find(concat("-ngl 4 on island0: found memory for ", left, " layers ([island0]")) == 10);
        CHECK(notes[0].find('\n') == std::string::npos);
        const DeviceUse& use = engine.runner().memory_use()[1];
        CHECK(use.n_layers + use.has_output + use.has_input == left);
        CHECK(islands.states[0]->used == use.needed());
        CHECK(same(logits_of(engine), expected));
      }
      CHECK(islands.states[0]->live_buffers == 0);
    }
  }
}

TEST_CASE("the most layers that fit a device that reports more memory than it has") {
  const std::string model = "llama-gqa";
  std::vector<uint64_t> needed;
  for (int n = 0; n <= 4; ++n) {
    Islands islands;
    needed.push_back(plan_memory(test::open_small(model), options_on(islands.open(), n))[1].needed());
  }
  for (const int asked : {kAllLayers, kAutoLayers, 3}) {
    for (int n = 0; n < 3; ++n) {
      Islands islands;
      islands.states[0]->budget = needed[static_cast<size_t>(n) + 1] - 1;
      islands.states[0]->tells_budget = false;
      EngineOptions options = options_on(islands.open(), asked);
      std::string note;
      options.note = [&](const std::string& line) { note += line; };
      {
        Engine engine(test::open_small(model), options);
        const DeviceUse& use = engine.runner().memory_use()[1];
        CHECK(use.n_layers + use.has_output == n);
        CHECK(note.find(concat("found memory for ", n)) != std::string::npos);
      }
      options.strict_offload = true;
      CHECK_THROWS_WITH_AS(Engine(test::open_small(model), options), doctest::Contains(concat("for ", n).c_str()),
                           Error);
      CHECK(islands.states[0]->live_buffers == 0);
    }
  }
}

TEST_CASE("an operation without a kernel runs on the CPU, is reported once and counted; strict refuses it") {
  const std::string model = "llama-gqa";
  const std::vector<float> expected = on_cpu(model);
  Islands islands;
  islands.states[0]->lacks = {Op::kGatedActivation, Op::kEmbed};
  EngineOptions options = options_on(islands.open(), kAllLayers);
  std::vector<std::string> notes;
  options.note = [&](const std::string& line) { notes.push_back(line); };
  {
    Engine engine(test::open_small(model), options);
    CHECK(same(logits_of(engine), expected));
    const PlanCache& plans = engine.runner().plans();
    REQUIRE(plans.fallbacks().size() == 2);
    REQUIRE(notes.size() == 2);
    CHECK(notes[0].find("embed of F32 in the input has no kernel on island0") != std::string::npos);
    CHECK(notes[1].find("gated_activation of F32 in layers 0 to 1 has no kernel on island0") != std::string::npos);
    const int64_t steps = engine.scheduler().stats().steps;
    CHECK(plans.fallback_runs()[0] == steps);
    CHECK(plans.fallback_runs()[1] == 2 * steps);
  }
  options.strict_offload = true;
  CHECK_THROWS_WITH_AS(Engine(test::open_small(model), options), doctest::Contains("strict"), Error);
  options.placement.n_gpu_layers = 1;  // the output alone needs neither
  CHECK_NOTHROW(Engine(test::open_small(model), options));
  CHECK(islands.states[0]->live_buffers == 0);
}

TEST_CASE("a profile has the operations of all devices and the copies at the border") {
  const std::string model = "llama-gqa";
  Islands islands;
  EngineOptions options = options_on(islands.open(), 2);
  options.profile = true;
  Engine engine(test::open_small(model), options);
  CHECK(same(logits_of(engine), on_cpu(model)));
  const ProfileCopies& copies = engine.profile()->copies();
  const int64_t steps = engine.scheduler().stats().steps;
  // The residual and the rope table cross: 64 and 16 floats per token.
  CHECK(copies.calls == 2 * steps);
  CHECK(copies.bytes % (4 * (64 + 16)) == 0);
  CHECK(copies.bytes > 0);
}

TEST_CASE("the host is at most two chunks of a prompt ahead of the device") {
  const std::string model = "llama-gqa";
  const std::vector<float> expected = on_cpu(model);
  Islands islands;
  const IslandState& state = *islands.states[0];
  Engine engine(test::open_small(model), options_on(islands.open(), 2));  // a layer on the CPU, then one on the island
  const int64_t before = state.n_waits;
  Request request;
  request.id = 9;
  for (int i = 0; i < 32; ++i) request.prompt.push_back(i);
  request.max_new_tokens = 1;
  REQUIRE(engine.submit(std::move(request)));
  engine.step();
  engine.step();
  CHECK(state.n_waits == before);
  engine.step();
  CHECK(state.n_waits == before + 1);
  while (!engine.idle()) engine.step();
  CHECK(same(logits_of(engine), expected));
}

TEST_CASE("loading tells of each weight, up to all bytes, and of nothing on the host") {
  std::vector<std::pair<uint64_t, uint64_t>> told;
  const auto load = [&](int layers) {
    told.clear();
    Islands islands;
    EngineOptions options = options_on(islands.open(), layers);
    options.loading = [&](uint64_t done, uint64_t total) { told.emplace_back(done, total); };
    const Engine engine(test::open_small("llama-gqa"), options);
  };
  load(0);
  CHECK(told.empty());
  load(kAllLayers);
  REQUIRE(told.size() > 10);
  for (size_t i = 0; i < told.size(); ++i) {
    CHECK(told[i].first > (i > 0 ? told[i - 1].first : 0));
    CHECK(told[i].second == told[0].second);
  }
  CHECK(told.back().first == told.back().second);
}

TEST_CASE("a shared block is copied on the device before it is written") {
  const std::string model = "llama-gqa";
  const std::vector<float> expected = on_cpu(model);
  Islands islands;
  const IslandState& state = *islands.states[0];
  Engine engine(test::open_small(model), options_on(islands.open(), kAllLayers));
  const int64_t uploads = state.n_uploads, steps = engine.scheduler().stats().steps;
  CHECK(same(logits_of(engine), expected));
  CHECK(state.n_copies_within > 0);
  CHECK(state.n_downloads == 0);
  CHECK(state.n_uploads - uploads == engine.scheduler().stats().steps - steps);  // the steps' inputs
}
