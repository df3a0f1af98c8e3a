// The minimum cost of one token, in bytes and operations, and the peak rates of a placed model's devices: both sides of
// every "fraction of the limit" that the program reports.
#pragma once

#include <cstdint>

#include "src/engine/placed_model.h"

namespace infer {

// Bytes of weights read per token: layers and output head. Of the experts, only the share that one token uses counts.
uint64_t bytes_per_token(const PlacedModel& placed);
// Bytes of keys and values per token, in all layers.
uint64_t cache_bytes_per_token(const PlacedModel& placed);

// Multiplications and additions in one token's matmuls, by kind of arithmetic.
struct Operations {
  double quantized = 0;  // int8 dot products
  double floats = 0;
};
Operations operations_per_token(const Model& model);  // without the head, which only rows with logits pass through
Operations operations_of_head(const Model& model);

// Limits for one token's weights when the devices work one after another, each on its share. Measured on each call,
// which takes up to 0.2 s per device. A limit is 0 if a device cannot report it.
MachineLimits measure_limits(const PlacedModel& placed);
double read_bandwidth(const PlacedModel& placed);  // only MachineLimits::read_bytes, in half the time

}  // namespace infer
