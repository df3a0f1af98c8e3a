// A host device whose large products of float weights are computed by OpenBLAS. All else, memory, streams and the
// layout of the cache among it, is that of the device it wraps.
//
// What it computes is near what the wrapped device computes, not equal: OpenBLAS adds in an order of its own, which
// depends on the number of rows and threads. So a token's value depends on what else is in the batch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ggml-like/backend.h"

namespace infer {

inline constexpr int64_t kNeverBlas = INT64_MAX;

struct BlasOptions {
  int n_threads = 1;
  // Products of fewer rows stay with the wrapped device: of F32 weights, and of F16 and BF16, which are converted.
  int64_t min_rows_f32 = 1, min_rows_converted = 1;
};

// Throws Error(kUnsupported) where OpenBLAS is not found. REQUIRES a host device.
std::unique_ptr<Device> create_blas_device(std::unique_ptr<Device> wrapped, const BlasOptions& options);

// Its version and kernels, "" where it is not found.
std::string openblas_description();

}  // namespace infer
