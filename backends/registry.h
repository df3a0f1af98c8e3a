// Every backend of this program, by name. The only place above which no backend is named.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ggml-like/backend.h"

namespace infer {

struct DeviceOptions {
  int n_threads = 0;                 // of the CPU; 0: physical cores
  int n_threads_batch = 0;           // of steps that compute more tokens than sequences; 0: n_threads
  std::vector<int> processors = {};  // that the CPU's threads stay on, in turn; none: anywhere
  // Of an accelerator: the value computed for a token is the same to the bit, whatever else is in its batch (one kernel
  // family, fixed splits). The CPU and ref always are.
  bool deterministic = false;
  // Of the CPU: products of F32, F16 and BF16 weights with at least `blas_min_rows` rows (0: where it was measured to
  // win) are left to OpenBLAS. Then a token's value depends on its batch.
  bool blas = false;
  int64_t blas_min_rows = 0;
};

// Names that open_device() takes on this machine: "cpu", "ref", and the accelerators found.
std::vector<std::string> device_names();

// The accelerator that is taken where none is named: the first that is no processor playing one; "" if there is none.
std::string default_accelerator();

// Throws Error(kInvalidArgument) for an unknown name, and what the backend throws when it can not start.
std::unique_ptr<Device> open_device(const std::string& name, const DeviceOptions& options = {});

// The version of OpenBLAS that DeviceOptions::blas uses, "" where there is none.
std::string blas_description();

// Instruction set levels of the CPU backend that run here, weakest first.
std::vector<std::string> cpu_level_names();

}  // namespace infer
