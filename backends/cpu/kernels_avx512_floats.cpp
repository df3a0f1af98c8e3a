// CPU kernels for AVX-512 F, BW, DQ and VL, except matmuls. For the levels of kernels_avx512.cpp and
// kernels_avx512vnni.cpp.
#include <immintrin.h>

#include "backends/cpu/kernel_table.h"

namespace infer::cpu {
namespace {

#include "backends/cpu/kernels/simd_avx512.h"

#include "backends/cpu/kernels/all_floats.h"

}  // namespace

#define INFER_TABLE kAvx512Floats
#include "backends/cpu/kernels/float_table_end.h"

}  // namespace infer::cpu
