#include "ggml-like/error.h"

#include <cstdio>
#include <cstdlib>

namespace infer {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "infer: internal error: %s does not hold at %s:%d\n", condition, file, line);
  std::abort();
}

}  // namespace infer
