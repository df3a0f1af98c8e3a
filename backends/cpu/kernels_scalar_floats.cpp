// CPU kernels in plain code, except matmuls. They define the bits that the CPU backend computes.
#include "backends/cpu/kernel_table.h"

namespace infer::cpu {
namespace {

#include "backends/cpu/kernels/simd_scalar.h"

#include "backends/cpu/kernels/all_floats.h"

}  // namespace

#define INFER_TABLE kScalarFloats
#include "backends/cpu/kernels/float_table_end.h"

}  // namespace infer::cpu
