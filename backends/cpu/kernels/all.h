// Everything a level consists of, in order. Included by kernels_<isa>.cpp inside its anonymous namespace, after a SIMD
// header: all of it is internal to that unit, so the linker can never take a copy compiled for one processor into the
// code of another. Each needs what stands before it; the empty lines keep the formatter from sorting them.

#include "backends/cpu/kernels/formats.h"

#include "backends/cpu/kernels/weight_stream.h"

#include "backends/cpu/kernels/products_quantized.h"

#include "backends/cpu/kernels/products_streamed.h"

#include "backends/cpu/kernels/products_token_lanes.h"

#include "backends/cpu/kernels/products_float.h"

#include "backends/cpu/kernels/floats.h"

#include "backends/cpu/kernels/attention.h"

#include "backends/cpu/kernels/probes.h"

#include "backends/cpu/kernels/table.h"
