// How the KV cache stores keys and values: the definition that every device's kv_store follows. Pure; any thread.
#pragma once

#include <cstdint>

#include "ggml-like/data_type.h"

namespace infer {

// Stores x [n] as `type`; `to` has row_bytes(type, n) bytes. Like the type's from_float, except that Q8_0 and Q4_0 take
// their scale from the largest magnitude of each 32 values and round the rest to it. This runs for every token, whereas
// weights are encoded once and worth a search for better scales. REQUIRES: n is a multiple of the type's block size.
void store_cache_row(DataType type, const float* x, void* to, int64_t n);

}  // namespace infer
