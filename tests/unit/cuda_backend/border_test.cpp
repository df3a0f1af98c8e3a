// The cost of a step whose layers are on two CUDA devices and the CPU: the numbers that
// tests/unit/engine/border_test.cpp requires of any device, counted in calls of the runtime.
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>

#include "src/engine/engine_options.h"
#include "src/engine/model_runner.h"
#include "tests/cuda_stand_in/counts.h"

using namespace infer;
using cuda_stand_in::counts;

namespace {

// For all tests of this program, before the first call of the runtime.
const int kTwoDevices = setenv("INFER_CUDA_STAND_IN_DEVICES", "2", 1);

constexpr int kSteps = 4;

struct Outcome {
  std::vector<float> logits;                  // of all steps
  int64_t waits = 0, peer_copies = 0;         // of the host and between devices, in the last step
  int64_t graphs_in_last_step = 0, live = 0;  // created, and still alive at the end
};

Outcome decode(const std::string& name, const std::vector<std::string>& devices, const std::vector<double>& shares,
               bool experts_on_cpu) {
  std::shared_ptr<Model> model = load_model(GgufFile::open(INFER_SOURCE_DIR "/tests/data/arch/" + name + ".gguf"));
  EngineOptions options;
  options.devices = devices;
  options.n_threads = 1;
  options.deterministic = true;
  options.strict_offload = true;
  options.context = 64;
  options.step_tokens = 8;
  options.key_type = options.value_type = DataType::kF32;
  options.placement.n_gpu_layers = kAllLayers;
  options.placement.tensor_split = shares;
  if (experts_on_cpu) options.placement.n_cpu_moe = model->n_layer();
  const RunnerOptions run = runner_options(model, options, nullptr);
  ModelRunner runner(model, run);
  StepInputs step(run.capacity);
  Outcome outcome;
  for (int i = 0; i < kSteps; ++i) {
    step.clear();
    const std::vector<int32_t> table = {0, 1};
    const std::span<const int32_t> tables[] = {table};
    step.add_sequence(tables, i + 1);
    step.add_token(0, (i * 31 + 5) % model->n_vocab(), i, true);
    const cuda_stand_in::Counts before = counts();
    runner.run(step, 0);
    const cuda_stand_in::Counts after = counts();
    outcome.waits = after.waits - before.waits;
    outcome.peer_copies = after.peer_copies - before.peer_copies;
    outcome.graphs_in_last_step = after.graphs - before.graphs;
    const std::span<const float> logits = runner.logits(0);
    outcome.logits.insert(outcome.logits.end(), logits.begin(), logits.end());
  }
  outcome.live = counts().live_graphs;
  return outcome;
}

struct Expected {
  int64_t waits, peer_copies;
};

void check_split(const std::string& name, const std::vector<std::string>& devices, const std::vector<double>& shares,
                 const Expected& expected, bool experts_on_cpu = false) {
  CAPTURE(name);
  CAPTURE(devices.size());
  const Outcome found = decode(name, devices, shares, experts_on_cpu);
  const Outcome on_cpu = decode(name, {"cpu"}, {}, false);
  REQUIRE(found.logits.size() == on_cpu.logits.size());
  int n_different = 0;  // NaN too
  for (size_t i = 0; i < found.logits.size(); ++i) {
    n_different += !(std::abs(found.logits[i] - on_cpu.logits[i]) < 1e-3f);
  }
  CHECK(n_different == 0);
  CHECK(found.waits == expected.waits);
  CHECK(found.peer_copies == expected.peer_copies);
  CHECK(found.graphs_in_last_step == 0);
  CHECK(found.live > 0);
  CHECK(counts().live_graphs == 0);
}

}  // namespace

TEST_CASE("a step waits once for the outputs, and not between devices that copy from each other") {
  REQUIRE(kTwoDevices == 0);
  for (const std::string name : {"llama-gqa", "qwen3moe"}) {
    check_split(name, {"cuda0"}, {}, {1, 0});
    // Two values cross the one border.
    check_split(name, {"cuda0", "cuda1"}, {1, 1}, {1, 2});
    check_split(name, {"cuda1", "cuda0"}, {1, 1}, {1, 2});
    // The embedding and the first layer, the second layer, the output: one wait to leave cuda0.
    check_split(name, {"cuda0", "cpu", "cuda1"}, {2, 1, 1}, {2, 0});
  }
}

TEST_CASE("experts on the CPU cost one wait for each layer") {
  const int64_t n_layer = 2;
  check_split("qwen3moe", {"cuda0"}, {}, {n_layer + 1, 0}, true);
  check_split("qwen3moe", {"cuda0", "cuda1"}, {1, 1}, {n_layer + 1, 2}, true);
}
