// The plans of a run are bounded in number, whatever the shapes of its steps.
#include "src/engine/plan_cache.h"

#include "tests/support/island_device.h"
#include "tests/support/plan_memory.h"
#include "tests/unit/engine/engine_world.h"

namespace infer {
namespace {

using namespace infer::test;

constexpr size_t kMost = 4;

// What a runner has: a model on an island, its memory, and its plans.
class PlansOfIsland {
 public:
  PlansOfIsland() : placed_(model_, options()), memory_(placed_, streams()), plans_(placed_, memory_, streams_, kMost) {
    const Bucket bucket = largest_bucket(placed_.options().capacity);
    BucketPlan largest = make_plan(placed_, bucket, &memory_);
    memory_.allocate(*largest.plan, memory_use(placed_, *largest.plan));
    plans_.keep(bucket, std::move(largest));
    memory_.upload_weights();
  }

  // The logits after the last of `n` tokens.
  std::vector<float> run(int n) {
    PlanCache::Entry& entry = plans_.get({bucket_size(n), 1, 1, 0});
    StepInputs step(placed_.options().capacity);
    const std::vector<int32_t> table = {0, 1};
    const std::span<const int32_t> tables[] = {table};
    step.add_sequence(tables, n);
    for (int i = 0; i < n; ++i) step.add_token(0, 3 + i * 7 % 200, i, i == n - 1);
    entry.made.plan->run(step);
    return output_values(*entry.made.plan, entry.made.outputs.logits, step.view());
  }

  const PlanCache& plans() const { return plans_; }
  const IslandState& island() const { return *state_; }

 private:
  RunnerOptions options() {
    auto devices = std::make_shared<DeviceSet>();
    devices->devices.push_back(open_device("cpu", {.n_threads = 1}));
    devices->devices.push_back(make_island("island", open_device("cpu", {.n_threads = 1}), state_));
    devices->of_layers = {1};
    EngineOptions engine = small_options();
    engine.opened = std::move(devices);
    engine.placement.n_gpu_layers = placeable_parts(model_->n_layer());
    engine.step_tokens = 64;
    return runner_options(model_, engine, nullptr);
  }
  std::span<const std::unique_ptr<Stream>> streams() {
    for (Device* device : placed_.devices()) streams_.push_back(device->create_stream());
    return streams_;
  }

  std::shared_ptr<IslandState> state_ = std::make_shared<IslandState>();
  std::shared_ptr<Model> model_ = open_model("Q8_0");
  PlacedModel placed_;
  std::vector<std::unique_ptr<Stream>> streams_;
  ModelMemory memory_;
  PlanCache plans_;
};

}  // namespace

TEST_CASE("memory does not grow with the number of shapes, and a plan that was dropped is made again") {
  PlansOfIsland world;
  const std::vector<float> first = world.run(1);
  const int64_t segments_of_plan = world.island().live_segments;
  REQUIRE(segments_of_plan > 0);
  const uint64_t used = world.island().used;
  for (int round = 0; round < 2; ++round) {
    for (const int n : {2, 3, 4, 6, 8, 12, 16, 24, 32, 48}) {
      world.run(n);
      CHECK(world.plans().size() <= kMost);
      CHECK(world.island().live_segments <= static_cast<int64_t>(kMost) * segments_of_plan);
    }
  }
  CHECK(world.island().used == used);
  const std::vector<float> again = world.run(1);
  REQUIRE(again.size() == first.size());
  CHECK(std::memcmp(again.data(), first.data(), first.size() * sizeof(float)) == 0);
}

TEST_CASE("the plan that is dropped is the least recently used one") {
  PlansOfIsland world;
  for (const int n : {1, 2, 3}) world.run(n);  // and the largest plan, which was made first
  world.run(1);
  const int64_t before = world.island().n_compiles;
  world.run(4);  // instead of the largest
  world.run(6);  // instead of that for two tokens
  world.run(1);
  world.run(3);
  const int64_t of_new = world.island().n_compiles - before;
  world.run(2);
  CHECK(of_new > 0);
  CHECK(world.island().n_compiles - before == of_new / 2 * 3);
}

}  // namespace infer
