// Matmuls for NEON with the dot product instructions.
#include <arm_neon.h>

#include "backends/cpu/kernel_table.h"
#include "ggml-like/quant/codebooks_data.h"

namespace infer::cpu {
namespace {

#include "backends/cpu/kernels/simd_neon.h"

#include "backends/cpu/kernels/all.h"

}  // namespace

#define INFER_LEVEL "dotprod"
#define INFER_TABLE kDotprodMatmuls
#include "backends/cpu/kernels/table_end.h"

}  // namespace infer::cpu
