// Matmuls for NEON (Armv8).
#include <arm_neon.h>

#include "backends/cpu/kernel_table.h"
#include "ggml-like/quant/codebooks_data.h"

namespace infer::cpu {
namespace {

#include "backends/cpu/kernels/simd_neon.h"

#include "backends/cpu/kernels/all.h"

}  // namespace

#define INFER_LEVEL "neon"
#define INFER_TABLE kNeonMatmuls
#include "backends/cpu/kernels/table_end.h"

}  // namespace infer::cpu
