// Planned memory, without allocating it.
#include <doctest/doctest.h>

#include "src/engine/engine.h"

using namespace infer;

namespace {

std::shared_ptr<Model> small_model() { return load_model(GgufFile::open(INFER_SOURCE_DIR "/tests/data/spm.gguf")); }

EngineOptions on_reference_device(int n_gpu_layers) {
  EngineOptions options;
  options.devices = {"ref"};
  options.placement.n_gpu_layers = n_gpu_layers;
  return options;
}

}  // namespace

TEST_CASE("as many layers are placed as fit besides the reserve") {
  EngineOptions options = on_reference_device(kAllLayers);
  options.context = kBlockTokens;
  const DeviceUse all = plan_memory(small_model(), options).back();
  REQUIRE(all.n_layers == 2);
  // A context for which the cache of one layer takes two fifths of the memory.
  const uint64_t free = all.memory.free, of_layer = all.cache_per_token / 2;
  options.context = static_cast<int64_t>(free / 5 * 2 / of_layer);
  options.placement.n_gpu_layers = kAutoLayers;
  const auto layers = [&](uint64_t reserved) {
    options.reserved = {0, reserved};
    const std::vector<DeviceUse> uses = plan_memory(small_model(), options);
    CHECK(uses[0].n_layers + uses[1].n_layers == 2);
    return uses[1].n_layers;
  };
  CHECK(layers(0) == 2);
  CHECK(layers(free / 5 * 2) == 1);
  CHECK(layers(free / 5 * 4) == 0);
  CHECK(layers(UINT64_MAX) == 0);
}

TEST_CASE("a device without layers, embedding and output holds nothing of the model") {
  const std::vector<DeviceUse> uses = plan_memory(small_model(), on_reference_device(0));
  CHECK((uses[0].has_input && uses[0].has_output && uses[0].n_layers == 2));
  CHECK((!uses[1].has_input && !uses[1].has_output && uses[1].weights == 0 && uses[1].cache == 0));
}

TEST_CASE("setting the cache type of keys does not change that of values, and vice versa") {
  const auto bytes_per_token = [](std::optional<DataType> key, std::optional<DataType> value) {
    EngineOptions options = on_reference_device(kAllLayers);
    options.key_type = key;
    options.value_type = value;
    return plan_memory(small_model(), options).back().cache_per_token;
  };
  // On the reference device both are F32 by default, and this model's keys are as long as its values.
  const uint64_t both = bytes_per_token(std::nullopt, std::nullopt);
  CHECK(bytes_per_token(DataType::kF16, std::nullopt) == both / 4 * 3);
  CHECK(bytes_per_token(std::nullopt, DataType::kF16) == both / 4 * 3);
  CHECK(bytes_per_token(DataType::kF16, DataType::kF16) == both / 2);
}

TEST_CASE("the planned bytes of a step's inputs are those of its buffer") {
  for (const StepCapacity& capacity : {StepCapacity{7, 3, 2, 1, 5}, StepCapacity{1, 0, 1, 4, 0}}) {
    CHECK(StepLayout(capacity).bytes() == StepInputs(capacity).raw().size_bytes());
  }
}
