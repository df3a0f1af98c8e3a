// CPU kernels for AVX2, FMA and F16C, except matmuls. For the levels of kernels_avx2.cpp and kernels_avxvnni.cpp.
#include <immintrin.h>

#include "backends/cpu/kernel_table.h"

namespace infer::cpu {
namespace {

#include "backends/cpu/kernels/simd_avx2.h"

#include "backends/cpu/kernels/all_floats.h"

}  // namespace

#define INFER_TABLE kAvx2Floats
#include "backends/cpu/kernels/float_table_end.h"

}  // namespace infer::cpu
