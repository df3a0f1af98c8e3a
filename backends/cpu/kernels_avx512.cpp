// Matmuls for AVX-512 F, BW, DQ and VL.
#include <immintrin.h>

#include "backends/cpu/kernel_table.h"
#include "ggml-like/quant/codebooks_data.h"

namespace infer::cpu {
namespace {

#include "backends/cpu/kernels/simd_avx512.h"

#include "backends/cpu/kernels/all.h"

}  // namespace

#define INFER_LEVEL "avx512"
#define INFER_TABLE kAvx512Matmuls
#include "backends/cpu/kernels/table_end.h"

}  // namespace infer::cpu
