// The bytes a run will take on each device, by purpose, computed before any are allocated.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/engine/placed_model.h"

namespace infer {

struct DeviceUse {
  std::string device;
  bool is_host = false;  // weights are used directly from the mapped file
  int n_layers = 0;
  std::vector<LayerRange> layers;              // on this device
  bool has_input = false, has_output = false;  // the embedding, the output matrix
  uint64_t weights = 0, activations = 0;
  uint64_t cache = 0;                            // keys and values, recurrent states
  uint64_t states = 0;                           // part of `cache`: recurrent states
  uint64_t staging = 0;                          // a step's inputs; on the host, also its results
  uint64_t guest_weights = 0;                    // part of `weights`: matrices whose layer is on another device
  std::map<DataType, uint64_t> weights_by_type;  // bytes
  uint64_t cache_per_token = 0;                  // keys and values in this device's layers
  DeviceMemory memory;                           // before any allocation

  uint64_t needed() const { return weights + cache + activations + staging; }
};

// One entry per device. `largest` is the plan of the largest bucket; no step takes more. Throws Error(kOutOfMemory) for
// a cache whose size overflows.
std::vector<DeviceUse> memory_use(const PlacedModel& placed, const Plan& largest);

}  // namespace infer
