// Fixed loops that measure the peak rates of a GPU, for `infer bench`.
#pragma once

#include "backends/cuda/memory.h"

namespace infer::cuda {

// Bytes per second at which kernels read the device's memory; 0 if a model has left too little of it.
double probe_read(Context& context);
// Multiplications and additions per second of fp16 matrices with F32 sums, by mma.m16n8k16 on operands in registers.
// wgmma reaches more on compute capability 9.0.
double probe_matrices(Context& context);

}  // namespace infer::cuda
