// A device for tests of placement: computes with another device's kernels in memory that the host can not address, on a
// thread of its own, so that what is under way is really under way. Its memory is counted and bounded, and it can be
// told to fail, to lack kernels and to stand still.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "ggml-like/backend.h"

namespace infer::test {

// What the test sets and sees. Shared by the device, its buffers and its streams.
struct IslandState {
  // Set before the device is used.
  uint64_t budget = uint64_t{1} << 40;  // bytes
  bool tells_budget = true;             // memory() is the budget; else as much as anybody could want
  int64_t fail_at = -1;                 // the allocation, counted from 0, that finds no memory
  bool fails_ever_after = false;        // and all further ones
  std::set<Op> lacks;                   // operations without a kernel

  // Seen.
  std::atomic<int64_t> n_allocations = 0, live_buffers = 0, n_copies_in = 0, n_copies_out = 0;
  std::atomic<uint64_t> used = 0, most_used = 0;
  std::atomic<int64_t> stale_inputs = 0;  // segments that saw other step inputs than those they were given with

  // While held, nothing that is queued runs, until somebody waits for it.
  void hold();
  bool release();  // whether it was held until now
  std::atomic<int64_t> waits_while_held = 0;

  std::mutex mutex;
  std::condition_variable changed;
  bool held = false;  // guarded by mutex
};

// `inner` computes; it is a host device.
std::unique_ptr<Device> make_island(std::string name, std::unique_ptr<Device> inner,
                                    std::shared_ptr<IslandState> state);

}  // namespace infer::test
