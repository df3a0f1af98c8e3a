// cp.async. On a GPU a copy happens at any time between its queueing and the wait for its group. Here the target is
// overwritten when the copy is queued, so that data that others still read there is lost, and gets its value when the
// copy is waited for.
#include <cstring>
#include <vector>

#include "cuda_stand_in_language.h"
#include "tests/cuda_stand_in/access_checks.h"
#include "tests/cuda_stand_in/grid.h"

namespace cuda_stand_in {
namespace {

constexpr size_t kBytes = 16;

struct Copy {
  void* to;
  const void* from;  // null: zeros
  unsigned group;
};

// Of one thread.
struct Copies {
  uint64_t block_serial = 0;
  std::vector<Copy> queued;
  unsigned group = 0;  // the one that is not committed
};

Copies& running_copies() {
  static std::vector<Copies> all(kMostThreads);
  const Thread& t = running_thread;
  Copies& mine = all[t.thread];
  if (mine.block_serial != t.block_serial) mine = {t.block_serial, {}, 0};
  return mine;
}

}  // namespace

void queue_copy(void* to, const void* from) {
  const void* const caller = __builtin_return_address(0);
  check_alignment(to, kBytes, caller);
  if (!is_shared(to, kBytes)) fail(running_thread_name() + " copies to memory that is not shared");
  check_access(to, kBytes, Access::kWrite, caller);
  if (from) {
    check_alignment(from, kBytes, caller);
    check_access(from, kBytes, Access::kRead, caller);
  }
  std::memset(to, 0xff, kBytes);
  Copies& mine = running_copies();
  mine.queued.push_back({to, from, mine.group});
}

void commit_copies() { ++running_copies().group; }

void wait_copies(unsigned groups_left) {
  Copies& mine = running_copies();
  std::vector<Copy> left;
  for (const Copy& c : mine.queued) {
    if (c.group + groups_left >= mine.group) {
      left.push_back(c);
      continue;
    }
    check_access(c.to, kBytes, Access::kWrite, __builtin_return_address(0));
    if (c.from) std::memcpy(c.to, c.from, kBytes);
    else std::memset(c.to, 0, kBytes);
  }
  mine.queued = std::move(left);
}

}  // namespace cuda_stand_in
