// Watches the allocations of C++ code, and lets chosen ones fail. For this to be possible, the test program has
// operators new and delete of its own.
#pragma once

#include <cstddef>

namespace infer::test {

// Counts what this thread allocates from now on. One at a time per thread.
class Allocations {
 public:
  Allocations();
  ~Allocations();
  Allocations(const Allocations&) = delete;
  Allocations& operator=(const Allocations&) = delete;

  size_t count() const;
  size_t peak() const;  // bytes that were allocated at a time and not yet freed
};

// Lets the allocation number `n`, from 1 on, fail, alone or with all that follow. Concerned are threads that began
// while there was a FailingAllocation, this one or one before. One at a time.
class FailingAllocation {
 public:
  enum Mode { kOne, kAllFrom };
  FailingAllocation(size_t n, Mode mode);
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;

  bool failed() const;  // whether there were so many
};

}  // namespace infer::test
