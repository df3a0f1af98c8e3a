// Keys and values as the KV cache stores them: the definition that every device's kv_store follows. Pure; any thread.
#pragma once

#include <cstdint>

#include "ggml-like/data_type.h"

namespace infer {

// Stores x [n] as `type`; `to` has row_bytes(type, n). As the type's from_float, but Q8_0 and Q4_0 take their scale
// from the largest magnitude of each 32 values and round the rest to it: this is done for every token, where weights,
// which are encoded once, are searched for better scales. REQUIRES n to be a multiple of the type's block size.
void store_cache_row(DataType type, const float* x, void* to, int64_t n);

}  // namespace infer
