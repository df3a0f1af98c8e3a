// What the simulated machine is like, from the environment:
//   INFER_CUDA_STAND_IN_DRIVER=11040       the version of CUDA that its driver supports, 0: no driver (default 13000)
//   INFER_CUDA_STAND_IN_DEVICES=2          the number of devices, at most 8 (1)
//   INFER_CUDA_STAND_IN_CAPABILITY=6.1     their compute capability (8.0); the program's code is for 7.5 and later
//   INFER_CUDA_STAND_IN_UUID=HEX           32 digits: the first device; the last byte counts up for the others
//   INFER_CUDA_STAND_IN_MEMORY_MB=64       the memory of each device (8192)
//   INFER_CUDA_STAND_IN_POOLS=0            no stream-ordered memory pools
//   INFER_CUDA_STAND_IN_FAIL_ALLOCATION=N  the N-th allocation of device or pinned memory fails
//   INFER_CUDA_STAND_IN_LOST=N             the N-th kernel that runs loses the device
// Failures print a line that begins with "cuda stand-in: " to standard error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace cuda_stand_in {

inline constexpr int kMostDevices = 8;

struct Settings {
  int driver = 13000;
  int devices = 1;
  int major = 8, minor = 0;
  std::string uuid = "00000000000000000000000000000000";
  size_t memory_bytes = size_t{8} << 30;
  bool pools = true;
  int64_t fail_allocation = 0, lost = 0;  // counted from 1; 0: none
};

const Settings& settings();

}  // namespace cuda_stand_in
