// OpenBLAS, opened at run time: the program neither links it nor requires it. Loaded once per process, never closed.
#pragma once

#include <cstdint>
#include <string>

namespace infer::blas {

// The functions that we use, declared here so that OpenBLAS's headers are not needed. Sizes are `int`: the interface
// with 32-bit integers, which distributions install as libopenblas.so.0.
struct OpenBlas {
  // c[m][n] = a[m][k] * b[n][k]^T; lda, ldb and ldc are the row strides in values.
  void multiply(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb, float* c,
                int64_t ldc) const;

  void (*sgemm)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float* a, int lda,
                const float* b, int ldb, float beta, float* c, int ldc);
  void (*set_num_threads)(int n);  // for the matmuls that the calling thread requests
  std::string description;         // "OpenBLAS 0.3.21 ... SkylakeX MAX_THREADS=64"
};

// Loads $INFER_BLAS_LIBRARY, else libopenblas.so.0. Throws Error(kUnsupported) if there is none. The first call sets
// environment variables, so it must be made before other threads exist.
const OpenBlas& open_openblas();

}  // namespace infer::blas
