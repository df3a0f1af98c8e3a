#include "ggml-like/quant/encode.h"

#include "ggml-like/error.h"

namespace infer {

void encode_blocks(DataType type, const float* values, const float* importance, void* blocks, int64_t n) {
  const TypeTraits& t = traits(type);
  if (t.encode) return t.encode(values, importance, blocks, n);
  CHECK_INTERNAL(t.from_float != nullptr);
  t.from_float(values, blocks, n);
}

}  // namespace infer
