// How the KV cache stores keys and values: the definition that every device's kv_store follows. Pure; any thread.
#pragma once

#include <cstdint>

#include "ggml-like/data_type.h"

namespace infer {

// Stores x [n] as `type`; `to` has row_bytes(type, n) bytes. Like the type's from_float, except that the quantized
// types take scale and minimum from the extremes of each 32 values and round the rest to them: Q8_0 and Q4_0 to the
// rounded scale, Q4_1, Q5_0, Q5_1 and IQ4_NL as ggml's quantize_row_*_ref. This runs for every token, whereas weights
// are encoded once and worth a search for better scales. Always finite. REQUIRES: n is a multiple of the type's block
// size.
void store_cache_row(DataType type, const float* x, void* to, int64_t n);

}  // namespace infer
