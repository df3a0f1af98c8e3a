// All headers of kernels_<isa>.cpp, in order. Included inside its anonymous namespace, after a SIMD header:
// everything is internal to that unit, so the linker can never use a copy compiled for one processor in the code of
// another. Each header needs those before it; the empty lines keep the formatter from sorting them.

#include "backends/cpu/kernels/formats.h"

#include "backends/cpu/kernels/codebooks.h"

#include "backends/cpu/kernels/expand.h"

#include "backends/cpu/kernels/weight_stream.h"

#include "backends/cpu/kernels/quantized.h"

#include "backends/cpu/kernels/gemm_few.h"

#include "backends/cpu/kernels/few_small.h"

#include "backends/cpu/kernels/gemm_panels.h"

#include "backends/cpu/kernels/gemm.h"

#include "backends/cpu/kernels/gemm_in_order.h"

#include "backends/cpu/kernels/few_blocks.h"

#include "backends/cpu/kernels/gemm_expanded.h"

#include "backends/cpu/kernels/gemm_token_lanes.h"

#include "backends/cpu/kernels/gemm_float.h"

#include "backends/cpu/kernels/probes.h"

#include "backends/cpu/kernels/table.h"
