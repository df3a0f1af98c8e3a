// OpenBLAS, opened at run time: the program neither links nor needs it. One copy per process, never closed.
#pragma once

#include <cstdint>
#include <string>

namespace infer::blas {

// Its C interface, as far as it is used; declared here, so that no header of it is needed. Sizes are `int` (the
// interface of 32-bit integers, which is what distributions call libopenblas.so.0).
struct OpenBlas {
  // c[m][n] = a[m][k] * b[n][k]^T, rows at distances of lda, ldb and ldc values.
  void multiply(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb, float* c,
                int64_t ldc) const;

  void (*sgemm)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float* a, int lda,
                const float* b, int ldb, float beta, float* c, int ldc);
  void (*set_num_threads)(int n);  // of the products that the calling thread asks for
  std::string description;         // "OpenBLAS 0.3.21 ... SkylakeX MAX_THREADS=64"
};

// The library $INFER_BLAS_LIBRARY, else libopenblas.so.0. Throws Error(kUnsupported) where there is none. Sets
// environment variables the first time: to be called before there are other threads.
const OpenBlas& open_openblas();

}  // namespace infer::blas
