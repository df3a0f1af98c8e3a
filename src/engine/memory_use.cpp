#include "src/engine/memory_use.h"

#include <unordered_map>
#include <unordered_set>

#include "ggml-like/error.h"

namespace infer {
namespace {

void add_weights(const PlacedModel& placed, const Plan& plan, std::vector<DeviceUse>& uses) {
  std::unordered_map<const Weight*, int> home;  // device of the weight's layer
  for (const int layer : placed.model().all_layers()) {
    for (const Weight* weight : placed.model().weights_of_layer(layer)) {
      home[weight] = placed.placement().of_layer(layer);
    }
  }
  for (size_t d = 0; d < uses.size(); ++d) {
    std::unordered_set<const void*> counted;  // the output matrix may be tied to the embedding
    for (const Weight* weight : plan.weights_on(static_cast<int>(d))) {
      if (!counted.insert(weight->host).second) continue;
      const uint64_t bytes = weight->desc.bytes();
      uses[d].weights += bytes;
      uses[d].weights_by_type[weight->desc.type] += bytes;
      if (weight->desc.shape.rank > 1 && home[weight] != static_cast<int>(d)) uses[d].guest_weights += bytes;
    }
  }
}

void add_cache(const LayerCache& cache, DeviceUse& use) {
  const uint64_t bytes = cache.block_bytes, n = static_cast<uint64_t>(cache.n_blocks);
  if (bytes != 0 && n > ((uint64_t{1} << 62) - use.cache) / bytes) {
    throw Error(ErrorCode::kOutOfMemory,
                cache.is_state() ? "The recurrent states would be larger than any memory. Choose a lower --parallel."
                                 : "The KV cache would be larger than any memory. Choose a smaller -c.");
  }
  use.cache += bytes * n;
  if (cache.is_state()) use.states += bytes * n;
}

void add_layers(const PlacedModel& placed, std::vector<DeviceUse>& uses) {
  const Placement& placement = placed.placement();
  uses[static_cast<size_t>(placement.input)].has_input = true;
  uses[static_cast<size_t>(placement.output)].has_output = true;
  for (const LayerRange& range : placement.ranges()) {
    DeviceUse& use = uses[static_cast<size_t>(range.device)];
    use.layers.push_back(range);
    use.n_layers += range.last - range.first + 1;
    uint64_t block = 0;
    for (int layer = range.first; layer <= range.last; ++layer) {
      for (const LayerCache& cache : placed.caches(layer)) {
        add_cache(cache, uses[static_cast<size_t>(cache.device)]);
        if (!cache.is_state()) block += cache.block_bytes;
      }
    }
    use.cache_per_token += block / kBlockTokens;
  }
}

// Inputs are on the host and are copied to each device with its own memory; results are copied back to staging memory
// on the host.
void add_staging(const PlacedModel& placed, const Plan& plan, std::vector<DeviceUse>& uses) {
  const uint64_t inputs = StepLayout(placed.options().capacity).bytes();
  uint64_t results = 0;
  for (size_t d = 0; d < uses.size(); ++d) {
    const bool has_own = !uses[d].is_host && plan.uses(static_cast<int>(d));
    uses[d].staging = d == 0 || has_own ? inputs : 0;
    if (has_own) results += plan.staging_bytes(static_cast<int>(d));
  }
  uses[0].staging += results;
}

}  // namespace

std::vector<DeviceUse> memory_use(const PlacedModel& placed, const Plan& largest) {
  std::vector<DeviceUse> uses(placed.devices().size());
  for (size_t d = 0; d < uses.size(); ++d) {
    const Device& device = *placed.devices()[d];
    uses[d].device = device.name();
    uses[d].is_host = device.is_host();
    uses[d].memory = device.memory();
    uses[d].activations = largest.arena_bytes(static_cast<int>(d));
  }
  add_weights(placed, largest, uses);
  add_layers(placed, uses);
  add_staging(placed, largest, uses);
  return uses;
}

}  // namespace infer
