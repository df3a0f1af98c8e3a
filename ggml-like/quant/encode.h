// Encoding floats as blocks of a quantized format with a weight per value: what from_float of the table in data_type.h
// is, plus the importance of each value to the product (see fit.h). Pure functions, safe from any thread.
#pragma once

#include <cstdint>

#include "ggml-like/data_type.h"

namespace infer {

// n values, n a multiple of the block size. `importance`: n weights >= 0, or null for all alike. The same blocks
// whatever the neighbours: a row may be encoded in pieces. REQUIRES a type with from_float.
void encode_blocks(DataType type, const float* values, const float* importance, void* blocks, int64_t n);

}  // namespace infer
