// Matmuls for AVX2, FMA and F16C.
#include <immintrin.h>

#include "backends/cpu/kernel_table.h"
#include "ggml-like/quant/codebooks_data.h"

namespace infer::cpu {
namespace {

#include "backends/cpu/kernels/simd_avx2.h"

#include "backends/cpu/kernels/all.h"

}  // namespace

#define INFER_LEVEL "avx2"
#define INFER_TABLE kAvx2Matmuls
#include "backends/cpu/kernels/table_end.h"

}  // namespace infer::cpu
