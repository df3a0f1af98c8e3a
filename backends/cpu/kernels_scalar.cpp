// CPU kernels in plain code: the definition of the CPU backend's bits. Products are the scalar dots of the type table.
#include <vector>

#include "backends/cpu/kernel_table.h"

namespace infer::cpu {
namespace {

#include "backends/cpu/kernels/simd_scalar.h"

#define INFER_LAMBDA __attribute__((always_inline))

// Each needs what stands before it; the empty lines keep the formatter from sorting them.
#include "backends/cpu/kernels/weight_stream.h"

#include "backends/cpu/kernels/products_float.h"

#include "backends/cpu/kernels/floats.h"

#include "backends/cpu/kernels/attention.h"

#include "backends/cpu/kernels/probes.h"

// Activations lie with the tokens of one block together; the scalar dot wants the blocks of one token in a row.
template <typename Block>
void blocks_of_token(const ProductArgs& a, int64_t token, int64_t count, std::vector<Block>& blocks) {
  const auto* x = static_cast<const Block*>(a.x);
  blocks.clear();
  for (int64_t b = 0; b < count; ++b) blocks.push_back(x[b * a.x_stride + token]);
}

template <DataType T>
void product_dot(const ProductArgs& a) {
  const auto dot = traits(T).dot;
  std::vector<Activation256> large;
  std::vector<Activation32> small;
  for (int64_t t = 0; t < a.n_tokens; ++t) {
    const bool super = traits(T).activation == ActivationFormat::kInt8Per256;
    if (super) blocks_of_token(a, t, a.k / 256, large);
    else blocks_of_token(a, t, a.k / 32, small);
    const void* x = super ? static_cast<const void*>(large.data()) : small.data();
    for (int64_t row = a.row_begin; row < a.row_end; ++row) a.out[t][row] = dot(a.weight + row * a.row_bytes, x, a.k);
  }
}

constexpr TypeKernel kProducts[] = {
    {DataType::kF32, product_float<LoadF32>},
    {DataType::kF16, product_float<LoadF16>},
    {DataType::kBF16, product_float<LoadBF16>},
    {DataType::kQ4_0, product_dot<DataType::kQ4_0>},
    {DataType::kQ4_1, product_dot<DataType::kQ4_1>},
    {DataType::kQ5_0, product_dot<DataType::kQ5_0>},
    {DataType::kQ5_1, product_dot<DataType::kQ5_1>},
    {DataType::kQ8_0, product_dot<DataType::kQ8_0>},
    {DataType::kQ2_K, product_dot<DataType::kQ2_K>},
    {DataType::kQ3_K, product_dot<DataType::kQ3_K>},
    {DataType::kQ4_K, product_dot<DataType::kQ4_K>},
    {DataType::kQ5_K, product_dot<DataType::kQ5_K>},
    {DataType::kQ6_K, product_dot<DataType::kQ6_K>},
    {DataType::kIQ4_NL, product_dot<DataType::kIQ4_NL>},
    {DataType::kIQ4_XS, product_dot<DataType::kIQ4_XS>},
    {DataType::kMXFP4, product_dot<DataType::kMXFP4>},
};

}  // namespace

#define INFER_LEVEL "scalar"
#define INFER_TABLE kScalarKernels
#include "backends/cpu/kernels/table_end.h"

}  // namespace infer::cpu
