// The cost of a step of a model that is split among devices: decode steps on the CPU and islands
// (tests/support/island_device.h), whose work runs only when the host waits for it. Every split must give the CPU's
// bits, and must not wait, copy or compile more often than stated here.
#include <doctest/doctest.h>

#include <cstring>
#include <map>

#include "backends/registry.h"
#include "ggml-like/error.h"
#include "src/model/model.h"
#include "tests/support/island_device.h"
#include "tests/support/plan_memory.h"
#include "tests/support/shipped_models.h"

using namespace infer;
using infer::test::IslandState;

namespace {

constexpr int kSteps = 6;
constexpr CacheTypes kCache = {DataType::kF32, DataType::kF32};

struct Split {
  std::function<int(int layer)> layer_device;  // of the CPU (0) and the islands (1, 2)
  bool experts_on_cpu = false;
  bool has_peers = false;  // the islands copy from each other
};

// Counts of all islands in one step.
struct Cost {
  int64_t waits = 0, compiles = 0, uploads = 0, downloads = 0, to_staging = 0, from_peers = 0;
};

Cost operator-(const Cost& a, const Cost& b) {
  return {a.waits - b.waits,         a.compiles - b.compiles,     a.uploads - b.uploads,
          a.downloads - b.downloads, a.to_staging - b.to_staging, a.from_peers - b.from_peers};
}

struct Outcome {
  std::vector<float> logits;  // of all steps
  std::vector<Cost> costs;    // of each
  int borders_from_islands = 0, borders_to_islands = 0;
  bool output_on_island = false;
};

// The CPU and two islands with the CPU's kernels, and what a model needs on each of them.
class SplitMachine {
 public:
  explicit SplitMachine(const Split& split) : split_(split) {
    owned_.push_back(open_device("cpu", {.n_threads = 1}));
    for (const char* name : {"island0", "island1"}) {
      states_.push_back(std::make_shared<IslandState>());
      states_.back()->has_peers = split.has_peers;
      owned_.push_back(test::make_island(name, open_device("cpu", {.n_threads = 1}), states_.back()));
    }
    for (const auto& device : owned_) {
      devices_.push_back(device.get());
      streams_.push_back(owned_streams_.emplace_back(device->create_stream()).get());
    }
  }

  // Computes one token after another, each as a step of the same plan.
  Outcome decode(const Model& model) {
    for (int layer = 0; layer < model.n_layer(); ++layer) {
      Device& device = *devices_[split_.layer_device(layer)];
      caches_.push_back(device.allocate(device.cache_block_bytes(model.cache_desc(layer, kCache))));
    }
    Graph graph(1, 1);
    const ModelOutputs outputs = model.build(graph, kCache);
    graph.mark_output(outputs.hidden);
    graph.mark_output(outputs.logits);
    Plan plan(std::move(graph), options(model));
    Outcome outcome;
    for (const Plan::Step& s : plan.steps()) {
      if (s.kind != Plan::Step::Kind::kBorder) continue;
      ++(s.from_device > 0 ? outcome.borders_from_islands : outcome.borders_to_islands);
    }
    outcome.output_on_island = split_.layer_device(kOutputLayer) > 0;
    StepInputs step({1, 1, 1, 1, 1});
    const test::PlanMemory memory(plan, devices_, streams_, step.layout());
    for (int i = 0; i < kSteps; ++i) {
      step.clear();
      const std::vector<int32_t> table{0};
      const std::span<const int32_t> tables[] = {table};
      step.add_sequence(tables, i + 1);
      step.add_token(0, (i * 31 + 5) % model.n_vocab(), i, true);
      const Cost before = counted();
      plan.run(step);
      outcome.costs.push_back(counted() - before);
      const std::vector<float> row = test::output_values(plan, outputs.logits, step.view());
      outcome.logits.insert(outcome.logits.end(), row.begin(), row.end());
    }
    return outcome;
  }

 private:
  PlanOptions options(const Model& model) {
    PlanOptions options;
    std::map<const Weight*, int> home;
    for (const int layer : model.all_layers()) {
      for (const ModelWeight* weight : model.weights_of_layer(layer)) {
        const bool on_cpu = split_.experts_on_cpu && weight->role == WeightRole::kExpert;
        home[weight] = on_cpu ? 0 : split_.layer_device(layer);
      }
    }
    options.devices = devices_;
    options.layer_device = split_.layer_device;
    options.weight_device = [home](const Weight& weight) { return home.at(&weight); };
    options.weight = [this](const Weight& weight, int device) -> BufferPlace {
      std::unique_ptr<Buffer>& buffer = weights_[{&weight, device}];
      if (!buffer) {
        buffer = devices_[device]->allocate(weight.desc.bytes());
        streams_[device]->upload(*buffer, 0, weight.host, weight.desc.bytes());
      }
      return {buffer.get(), 0};
    };
    options.cache = [this](const CacheDesc& desc) { return CacheRef{nullptr, caches_[desc.layer].get(), 0, 1}; };
    return options;
  }

  Cost counted() const {
    Cost sum;
    for (const auto& s : states_) {
      sum.waits += s->n_waits;
      sum.compiles += s->n_compiles;
      sum.uploads += s->n_uploads;
      sum.downloads += s->n_downloads;
      sum.to_staging += s->n_copies_to_staging;
      sum.from_peers += s->n_copies_from_peers;
    }
    return sum;
  }

  Split split_;
  std::vector<std::shared_ptr<IslandState>> states_;
  std::vector<std::unique_ptr<Device>> owned_;
  std::vector<std::unique_ptr<Stream>> owned_streams_;
  std::vector<Device*> devices_;
  std::vector<Stream*> streams_;
  std::map<std::pair<const Weight*, int>, std::unique_ptr<Buffer>> weights_;
  std::vector<std::unique_ptr<Buffer>> caches_;
};

Outcome decode(const std::string& model, const Split& split) {
  return SplitMachine(split).decode(*test::open_shipped(model));
}

struct Expected {
  int64_t waits = 0, from_peers = 0;
  int borders_from_islands = 0, borders_to_islands = 0;
};

void check_split(const std::string& model, const std::string& name, const Split& split, const Expected& expected) {
  CAPTURE(model);
  CAPTURE(name);
  const Outcome on_cpu = decode(model, {[](int) { return 0; }}), found = decode(model, split);
  REQUIRE(found.logits.size() == on_cpu.logits.size());
  CHECK(std::memcmp(found.logits.data(), on_cpu.logits.data(), found.logits.size() * sizeof(float)) == 0);
  CHECK(found.borders_from_islands == expected.borders_from_islands);
  CHECK(found.borders_to_islands == expected.borders_to_islands);
  CHECK(found.costs[0].compiles > 0);
  for (size_t i = 0; i < found.costs.size(); ++i) {
    CAPTURE(i);
    const Cost& cost = found.costs[i];
    CHECK((i == 0 || cost.compiles == 0));
    CHECK(cost.waits == expected.waits);
    // One transfer for each border that the host waits at, one for the outputs, and no others.
    CHECK(cost.to_staging == expected.borders_from_islands - expected.from_peers + found.output_on_island);
    CHECK(cost.from_peers == expected.from_peers);
    CHECK(cost.downloads == 0);
  }
}

const std::string kLlama = "tests/data/arch/llama-gqa", kMoe = "tests/data/arch/qwen3moe",
                  kDemo = "models/infer-demo-5m-q8_0";

}  // namespace

TEST_CASE("a decode step waits for a device once per border out of it, and once for the outputs") {
  for (const std::string& model : {kLlama, kMoe, kDemo}) {
    const int n = test::open_shipped(model)->n_layer();
    REQUIRE(n % 2 == 0);
    check_split(model, "all on the island", {[](int) { return 1; }}, {1, 0, 0, 0});
    check_split(model, "all but the input", {[](int layer) { return layer == kInputLayer ? 0 : 1; }}, {1, 0, 0, 1});
    check_split(model, "the second half", {[n](int layer) { return layer >= n / 2 ? 1 : 0; }}, {1, 0, 0, 1});
    check_split(model, "the first half", {[n](int layer) { return layer < n / 2 ? 1 : 0; }}, {1, 0, 1, 0});
    check_split(model, "a piece in the middle", {[n](int layer) { return layer == n / 2 ? 1 : 0; }}, {1, 0, 1, 1});
    check_split(model, "every second layer", {[n](int layer) { return layer >= 0 && layer < n && layer % 2; }},
                {n / 2, 0, n / 2, n / 2});
  }
}

TEST_CASE("experts on the CPU cost one wait per layer") {
  const int n = test::open_shipped(kMoe)->n_layer();
  check_split(kMoe, "experts on the CPU", {[](int) { return 1; }, true}, {n + 1, 0, n, n});
}

TEST_CASE("there is one wait between two devices, and none if they copy from each other") {
  for (const std::string& model : {kLlama, kMoe, kDemo}) {
    const int n = test::open_shipped(model)->n_layer();
    const auto halves = [n](int layer) { return layer >= n / 2 ? 2 : 1; };
    check_split(model, "two islands", {halves}, {2, 0, 1, 0});
    check_split(model, "two islands that are peers", {halves, false, true}, {1, 1, 1, 0});
    const auto turns = [n](int layer) { return layer >= 0 && layer < n && layer % 2 ? 2 : 1; };
    check_split(model, "peers in turns", {turns, false, true}, {1, n, n, 0});
  }
}
