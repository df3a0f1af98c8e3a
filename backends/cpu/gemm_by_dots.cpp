// Matmuls with quantized weights by the scalar dots of the type table, for all processors.
#include <vector>

#include "backends/cpu/kernel_table.h"

namespace infer::cpu {
namespace {

// Activations are stored block by block, with all tokens of a block together; the scalar dot needs the blocks of a
// token in a row.
template <typename Block>
void blocks_of_token(const MatmulArgs& a, int64_t token, int64_t count, std::vector<Block>& blocks) {
  const auto* x = static_cast<const Block*>(a.x);
  blocks.clear();
  for (int64_t b = 0; b < count; ++b) blocks.push_back(x[b * a.x_stride + token]);
}

}  // namespace

void gemm_by_dots(const MatmulArgs& a) {
  const TypeTraits& type = traits(a.type);
  const bool super = type.activation == ActivationFormat::kInt8Per256;
  std::vector<Activation256> large;
  std::vector<Activation32> small;
  for (int64_t t = 0; t < a.n_tokens; ++t) {
    if (super) blocks_of_token(a, t, a.k / 256, large);
    else blocks_of_token(a, t, a.k / 32, small);
    const void* x = super ? static_cast<const void*>(large.data()) : small.data();
    for (int64_t row = a.row_begin; row < a.row_end; ++row) {
      a.out[t][row] = type.dot(a.weight + row * a.row_bytes, x, a.k);
    }
  }
}

}  // namespace infer::cpu
