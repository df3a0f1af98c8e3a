// Encodes floats as blocks of a quantized format with a weight per value: from_float of the table in data_type.h, plus
// the importance of each value to the matmul (see fit.h). Pure functions, thread-safe.
#pragma once

#include <cstdint>

#include "ggml-like/data_type.h"

namespace infer {

// n values, n a multiple of the block size. `importance`: n weights >= 0, or null if all are equal. Blocks do not
// depend on their neighbours, so a row may be encoded in pieces. REQUIRES: the type has from_float.
void encode_blocks(DataType type, const float* values, const float* importance, void* blocks, int64_t n);

}  // namespace infer
