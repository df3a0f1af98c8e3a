// A device for tests that uses the kernels of a host device, in memory that the host cannot access. Queued work runs
// only when the host waits for it, so a missing wait or event gives wrong results. It counts its calls and has limited
// memory, and it can be made to fail or to lack kernels.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "ggml-like/backend.h"

namespace infer::test {

// A test's settings and counters, shared by the device, its buffers and its streams.
struct IslandState {
  // Set before the device is used.
  uint64_t budget = uint64_t{1} << 40;            // bytes
  bool tells_budget = true;                       // memory() reports the budget; else a size that is always enough
  int64_t fail_at = -1;                           // the allocation, counted from 0, that fails
  bool fails_ever_after = false;                  // and so do all later ones
  std::set<Op> lacks;                             // operations without a kernel
  std::function<bool(const OpDesc& op)> refuses;  // other operations that it does not support; null: none
  bool has_peers = false;                         // can copy from other islands without the host

  // Counters.
  int64_t n_allocations = 0, live_buffers = 0;
  uint64_t used = 0, most_used = 0;
  int64_t n_compiles = 0, live_segments = 0;
  int64_t n_waits = 0;  // of the host, for work that was not done
  int64_t n_uploads = 0, n_downloads = 0;
  int64_t n_copies_to_staging = 0, n_copies_within = 0, n_copies_from_peers = 0;  // calls of copy()
  int64_t n_values_to_staging = 0, bytes_to_staging = 0;                          // ranges in n_copies_to_staging
};

// REQUIRES that `inner`, whose kernels are used, is a host device.
std::unique_ptr<Device> make_island(std::string name, std::unique_ptr<Device> inner,
                                    std::shared_ptr<IslandState> state);

}  // namespace infer::test
