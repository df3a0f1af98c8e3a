// Matmuls of many rows on tensor cores, also with a matrix for each expert.
#pragma once

#include "backends/cuda/stream.h"
#include "ggml-like/backend.h"

namespace infer::cuda {

// Whether a matmul is computed by multiply_tiled(). Not with --deterministic: its sums differ from those for few rows.
bool is_tiled(const OpDesc& op, const Context& context);
size_t tiled_scratch_bytes(const OpDesc& op, const Context& context);
// REQUIRES is_tiled().
void multiply_tiled(const Launch& launch, CudaStream& stream);

}  // namespace infer::cuda
