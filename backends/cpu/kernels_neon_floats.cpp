// CPU kernels for NEON (Armv8), except matmuls. For the levels of kernels_neon.cpp, kernels_dotprod.cpp and
// kernels_i8mm.cpp.
#include <arm_neon.h>

#include "backends/cpu/kernel_table.h"

namespace infer::cpu {
namespace {

#include "backends/cpu/kernels/simd_neon.h"

#include "backends/cpu/kernels/all_floats.h"

}  // namespace

#define INFER_TABLE kNeonFloats
#include "backends/cpu/kernels/float_table_end.h"

}  // namespace infer::cpu
