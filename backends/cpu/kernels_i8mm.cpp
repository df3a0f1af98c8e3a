// Matmuls for NEON with the 8-bit integer matrix extension.
#include <arm_neon.h>

#include "backends/cpu/kernel_table.h"
#include "ggml-like/quant/codebooks_data.h"

namespace infer::cpu {
namespace {

#include "backends/cpu/kernels/simd_neon.h"

#include "backends/cpu/kernels/all.h"

}  // namespace

#define INFER_LEVEL "i8mm"
#define INFER_TABLE kI8mmMatmuls
#include "backends/cpu/kernels/table_end.h"

}  // namespace infer::cpu
