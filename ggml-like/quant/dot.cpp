#include "ggml-like/quant/dot.h"

namespace infer {

float reduce16(const float p[16]) {
  float r[8];
  for (int j = 0; j < 8; ++j) r[j] = p[j] + p[j + 8];
  for (int j = 0; j < 4; ++j) r[j] += r[j + 4];
  for (int j = 0; j < 2; ++j) r[j] += r[j + 2];
  return r[0] + r[1];
}

}  // namespace infer
