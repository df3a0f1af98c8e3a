// Counts of a program's calls of the runtime so far, for tests of what its work costs.
#pragma once

#include <cstdint>

namespace cuda_stand_in {

struct Counts {
  int64_t waits = 0;  // of the host, for work that was not done
  int64_t peer_copies = 0;
  int64_t graphs = 0, live_graphs = 0;  // executable ones
};

Counts counts();

}  // namespace cuda_stand_in
