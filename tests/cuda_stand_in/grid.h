// Runs the grid of one launch: block after block, the threads of a block as fibers. A thread runs until it ends or has
// to wait for others, so most mistakes with barriers show at once; those that depend on the order do not, and are found
// by comparing accesses (access_checks.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cuda_runtime.h"

namespace cuda_stand_in {

// What identifies the running thread to the checks of memory accesses.
struct Thread {
  int device;
  uint64_t launch;         // counts launches
  uint32_t block;          // in its grid
  uint64_t block_serial;   // counts the blocks of all launches
  uint32_t thread;         // in its block
  uint32_t barriers;       // that the block has passed
  uint32_t warp_barriers;  // that the thread's warp has passed
};

// Runs all threads on a device. Returns "" or what the kernel did wrong; the rest of the grid then does not run. One
// grid at a time.
std::string run_grid(const cudaLaunchConfig_t& config, const BoundKernel& kernel, int device);

// Whether a thread of a kernel is running, and which.
bool in_kernel();
const Thread& running_thread();
bool on_running_stack(const void* address);
bool is_argument(const void* address);  // of the running kernel
// The shared memory of the running block.
bool is_shared(const void* address, size_t bytes);
const char* shared_begin();
// Ends the launch with this message. Called by a thread of a kernel; does not return.
[[noreturn]] void fail(const std::string& what);
// "thread (3, 0, 0) of block (1, 0, 0)", the running one.
std::string running_thread_name();

inline constexpr size_t kMostShared = 48 << 10;  // bytes per block of a kernel that does not ask for more
inline constexpr size_t kMostThreads = 1024;

}  // namespace cuda_stand_in
