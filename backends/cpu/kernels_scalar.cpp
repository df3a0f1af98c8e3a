// Matmuls in plain code, for all processors; those with quantized weights are gemm_by_dots().
#include "backends/cpu/kernel_table.h"

namespace infer::cpu {
namespace {

#include "backends/cpu/kernels/simd_scalar.h"

// Each needs those before it; the empty lines keep the formatter from sorting them.
#include "backends/cpu/kernels/weight_stream.h"

#include "backends/cpu/kernels/gemm_float.h"

#include "backends/cpu/kernels/probes.h"

constexpr MatmulKernels kMatmuls[] = {
    float_kernels<LoadF32>(DataType::kF32),
    float_kernels<LoadF16>(DataType::kF16),
    float_kernels<LoadBF16>(DataType::kBF16),
};

}  // namespace

#define INFER_LEVEL "scalar"
#define INFER_TABLE kScalarMatmuls
#include "backends/cpu/kernels/table_end.h"

}  // namespace infer::cpu
