// All headers of kernels_<isa>_floats.cpp, in order. Included inside its anonymous namespace, after a SIMD header, as
// all.h is.

#include "backends/cpu/kernels/weight_stream.h"

#include "backends/cpu/kernels/gemm_float.h"

#include "backends/cpu/kernels/floats.h"

#include "backends/cpu/kernels/cache_codes.h"

#include "backends/cpu/kernels/attention_blocks.h"

#include "backends/cpu/kernels/attention.h"

#include "backends/cpu/kernels/index_scores.h"

#include "backends/cpu/kernels/recurrent.h"
