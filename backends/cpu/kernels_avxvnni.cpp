// Matmuls for AVX2 with AVX-VNNI.
#include <immintrin.h>

#include "backends/cpu/kernel_table.h"
#include "ggml-like/quant/codebooks_data.h"

namespace infer::cpu {
namespace {

#include "backends/cpu/kernels/simd_avx2.h"

#include "backends/cpu/kernels/all.h"

}  // namespace

#define INFER_LEVEL "avxvnni"
#define INFER_TABLE kAvxVnniMatmuls
#include "backends/cpu/kernels/table_end.h"

}  // namespace infer::cpu
