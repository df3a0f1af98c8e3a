// A host device that runs large matmuls with float weights on OpenBLAS. It passes everything else, including memory,
// streams and the layout of the cache, to the device that it wraps.
//
// Its results are close to those of the wrapped device but not equal: the order of OpenBLAS's additions depends on the
// number of rows and threads. The results for a token therefore depend on its batch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ggml-like/backend.h"

namespace infer {

inline constexpr int64_t kNeverBlas = INT64_MAX;

struct BlasOptions {
  int n_threads = 1;
  // Matmuls with fewer rows run on the wrapped device: with F32 weights, and with F16 or BF16, which are converted.
  int64_t min_rows_f32 = 1, min_rows_converted = 1;
};

// Throws Error(kUnsupported) if OpenBLAS is not found. REQUIRES a host device.
std::unique_ptr<Device> create_blas_device(std::unique_ptr<Device> wrapped, const BlasOptions& options);

// The version and kernels of OpenBLAS; "" if it is not found.
std::string openblas_description();

}  // namespace infer
