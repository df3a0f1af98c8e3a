// Runs the grid of one launch: block after block, the threads of a block as fibers. A thread runs until it ends or has
// to wait for others, so most mistakes with barriers show at once; those that depend on the order do not, and are found
// by comparing accesses (access_checks.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cuda_runtime.h"

namespace cuda_stand_in {

// The running thread of a kernel, for the checks of memory accesses. Each thread of the host has one of its own, so
// that what others do while a kernel runs is not taken for accesses of the kernel.
struct Thread {
  const char* stack = nullptr;  // [Fiber::kStackBytes]; null: no kernel runs
  int device = 0;
  uint64_t launch = 0;         // counts launches
  uint32_t block = 0;          // in its grid
  uint64_t block_serial = 0;   // counts the blocks of all launches
  uint64_t epoch = 0;          // counts blocks, and barriers of blocks
  uint32_t thread = 0;         // in its block
  uint32_t barriers = 0;       // that the block has passed
  uint32_t warp_barriers = 0;  // that the thread's warp has passed since the epoch began
};
extern constinit thread_local Thread running_thread;

// Runs all threads on a device. Returns "" or what the kernel did wrong; the rest of the grid then does not run. One
// grid at a time.
std::string run_grid(const cudaLaunchConfig_t& config, const BoundKernel& kernel, int device);

bool is_argument(const void* address);  // of the running kernel
// The shared memory of a block: where it begins; kMostShared bytes.
extern char* const shared_begin;
// Ends the launch with this message. Called by a thread of a kernel; does not return.
[[noreturn]] void fail(const std::string& what);
// "thread (3, 0, 0) of block (1, 0, 0)", the running one.
std::string running_thread_name();
// Gives `value` to all lanes of the warp. The last one to arrive calls `together` on what each lane gave, while the
// others have not yet gone on.
void exchange_all(uint64_t value, void (*together)(const uint64_t (&given)[warpSize]), Place place);

inline constexpr size_t kMostShared = 48 << 10;  // bytes per block of a kernel that does not ask for more
inline constexpr size_t kMostThreads = 1024;
inline constexpr uint32_t kMostWarpBarriers = (1u << 17) - 1;  // in one epoch; another then begins

}  // namespace cuda_stand_in
