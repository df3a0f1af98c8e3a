// Matmuls in plain code, for all processors: with quantized weights the scalar dots of the type table.
#include <vector>

#include "backends/cpu/kernel_table.h"

namespace infer::cpu {
namespace {

#include "backends/cpu/kernels/simd_scalar.h"

// Each needs those before it; the empty lines keep the formatter from sorting them.
#include "backends/cpu/kernels/weight_stream.h"

#include "backends/cpu/kernels/gemm_float.h"

#include "backends/cpu/kernels/probes.h"

// Activations are stored block by block, with all tokens of a block together; the scalar dot needs the blocks of a
// token in a row.
template <typename Block>
void blocks_of_token(const MatmulArgs& a, int64_t token, int64_t count, std::vector<Block>& blocks) {
  const auto* x = static_cast<const Block*>(a.x);
  blocks.clear();
  for (int64_t b = 0; b < count; ++b) blocks.push_back(x[b * a.x_stride + token]);
}

constexpr MatmulKernels kMatmuls[] = {
    float_kernels<LoadF32>(DataType::kF32),
    float_kernels<LoadF16>(DataType::kF16),
    float_kernels<LoadBF16>(DataType::kBF16),
};

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

#define INFER_LEVEL "scalar"
#define INFER_TABLE kScalarMatmuls
#include "backends/cpu/kernels/table_end.h"

}  // namespace infer::cpu
