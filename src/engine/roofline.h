// What one token costs at least, in bytes and operations, and what the devices of a placed model can do at best: the
// two sides of every "fraction of the limit" that the program reports.
#pragma once

#include <cstdint>

#include "src/engine/placed_model.h"

namespace infer {

// Bytes of weights that one token reads: those of the layers and the head. Of experts, the share in use.
uint64_t bytes_per_token(const PlacedModel& placed);
// Bytes of keys and values of one token, in all layers.
uint64_t cache_bytes_per_token(const PlacedModel& placed);

// Multiplications and additions of one token's matmuls, by the arithmetic they are done in.
struct Operations {
  double quantized = 0;  // int8 dot products
  double floats = 0;
};
Operations operations_per_token(const Model& model);  // without the head, which only rows with logits go through
Operations operations_of_head(const Model& model);

// Limits for one token's weights, each device working on its share after the other; measured now, which takes up to
// 0.2 s per device. A limit is 0 where a device does not know it.
MachineLimits measure_limits(const PlacedModel& placed);
double read_bandwidth(const PlacedModel& placed);  // MachineLimits::read_bytes alone, in half the time

}  // namespace infer
