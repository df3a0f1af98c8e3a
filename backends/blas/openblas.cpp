#include "backends/blas/openblas.h"

#include <dlfcn.h>

#include <cstdlib>
#include <limits>

#include "ggml-like/error.h"

namespace infer::blas {
namespace {

// Values of the CBLAS enumerations.
constexpr int kRowMajor = 101, kNoTranspose = 111, kTranspose = 112;

template <typename Function>
void find(void* library, const std::string& path, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function) return;
  throw Error(ErrorCode::kUnsupported,
              concat("[blas] expected a library with ", name, ", found ", path, " without it"));
}

OpenBlas open_library() {
  // After each matmul, OpenBLAS's threads would spin for milliseconds on cores that our threads need for the next
  // operation.
  // Its OpenMP and pthread builds read these variables when the library is loaded; values set by the user are kept.
  setenv("OMP_WAIT_POLICY", "passive", 0);
  setenv("OPENBLAS_THREAD_TIMEOUT", "4", 0);
  const char* chosen = std::getenv("INFER_BLAS_LIBRARY");
  const std::string path = chosen && *chosen ? chosen : "libopenblas.so.0";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* why = dlerror();
    throw Error(ErrorCode::kUnsupported,
                concat("[blas] expected the library ", path, " (Debian: libopenblas0-openmp), ",
                       "found none: ", why ? why : "unknown reason"));
  }
  OpenBlas blas;
  find(library, path, "cblas_sgemm", blas.sgemm);
  find(library, path, "openblas_set_num_threads", blas.set_num_threads);
  char* (*config)() = nullptr;
  find(library, path, "openblas_get_config", config);
  blas.description = config();
  return blas;
}

}  // namespace

void OpenBlas::multiply(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
                        float* c, int64_t ldc) const {
  for (const int64_t size : {m, n, k, lda, ldb, ldc}) CHECK_INTERNAL(size <= std::numeric_limits<int>::max());
  sgemm(kRowMajor, kNoTranspose, kTranspose, static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), 1, a,
        static_cast<int>(lda), b, static_cast<int>(ldb), 0, c, static_cast<int>(ldc));
}

const OpenBlas& open_openblas() {
  static const OpenBlas blas = open_library();
  return blas;
}

}  // namespace infer::blas
