// NVIDIA GPUs through CUDA. The runtime is linked in; the driver is found at run time, and without one no device is
// listed. See docs/notes/cuda.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ggml-like/backend.h"

namespace infer {

struct CudaOptions {
  bool deterministic = false;  // one kernel per operation for any batch
  uint64_t budget = 0;         // for tests: bytes of memory; 0: the device's own; also INFER_CUDA_BUDGET_MB
};

// The names of the devices that can be used on this machine: "cuda0", "cuda1", ... Empty without a driver.
std::vector<std::string> cuda_device_names();
// The first of them, "" if there is none.
std::string first_cuda_gpu();
// See device_card().
std::string cuda_card(const std::string& name);
// Why a device with this name cannot be used, in one line; "" if it can be, or if the machine has no such device.
std::string cuda_problem(const std::string& name);
// One line per problem, on machines that have NVIDIA's driver and GPUs.
std::vector<std::string> cuda_problems();

// REQUIRES one of the names above. Throws Error if the driver fails.
std::unique_ptr<Device> create_cuda_device(const std::string& name, const CudaOptions& options = {});

}  // namespace infer
