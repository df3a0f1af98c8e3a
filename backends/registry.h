// Every backend of this program, by name. No code above this file names one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ggml-like/backend.h"

namespace infer {

struct DeviceOptions {
  int n_threads = 0;                 // of the CPU; 0: physical cores
  int n_threads_batch = 0;           // for steps that compute more tokens than sequences; 0: n_threads
  std::vector<int> processors = {};  // that the CPU's threads are pinned to, in turn; empty: not pinned
  // For an accelerator: the results for a token are bit-identical whatever else is in its batch (one kernel family,
  // fixed splits). The CPU and ref are always deterministic in this sense.
  bool deterministic = false;
  // For the CPU: OpenBLAS computes matmuls of F32, F16 and BF16 weights with at least `blas_min_rows` rows (0: where it
  // was measured to be faster). The results for a token then depend on its batch.
  bool blas = false;
  int64_t blas_min_rows = 0;
};

// The names that open_device() accepts on this machine: "cpu", "ref", and the accelerators found.
std::vector<std::string> device_names();

// The default accelerator: the first GPU that CUDA can use, else the first hardware GPU of Vulkan; software renderers
// are skipped. "" if there is none.
std::string default_accelerator();

// Identifies the card of a device, which two backends may share; "" where it is not known.
std::string device_card(const std::string& name);

// One line for each GPU of this machine that a backend should support but cannot use, with the reason.
std::vector<std::string> device_problems();

// Throws Error(kInvalidArgument) for an unknown name, Error(kUnsupported) for one that device_problems() explains, or
// what the backend throws when it cannot start.
std::unique_ptr<Device> open_device(const std::string& name, const DeviceOptions& options = {});

// The version of OpenBLAS that DeviceOptions::blas uses; "" if there is none.
std::string blas_description();

// The instruction set levels of the CPU backend that run on this machine, weakest first.
std::vector<std::string> cpu_level_names();

}  // namespace infer
