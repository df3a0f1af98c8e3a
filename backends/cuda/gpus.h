// The GPUs of this machine that the program can use, and why it cannot use the others.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/runtime.h"

namespace infer::cuda {

struct Gpu {
  int number;  // as the runtime counts
  std::string name;
  cudaDeviceProp properties;
  std::string problem;  // a sentence; "": it can be used
};

struct Gpus {
  std::vector<Gpu> all;
  std::string problem;  // why there are none, a sentence
  // Whether the machine has no NVIDIA driver or GPU, which is not worth a message.
  bool none_expected = false;
};

// Asks the driver once; finds none without a driver. Creates nothing on the GPUs.
const Gpus& find_gpus();

// Whether code that was compiled for `architectures`, as in CMAKE_CUDA_ARCHITECTURES (here "75-real,90a-real,120"),
// runs on a compute capability. Binary code runs on the same major version with the same or a higher minor one, PTX on
// all later capabilities. Words such as "native" count as a match.
bool runs_on(std::string_view architectures, int major, int minor);

}  // namespace infer::cuda
