// Counts the allocations of C++ code, and makes chosen ones fail. For this the test program replaces operators new and
// delete.
#pragma once

#include <cstddef>

namespace infer::test {

// Counts what this thread allocates during its lifetime. One at a time per thread.
class Allocations {
 public:
  Allocations();
  ~Allocations();
  Allocations(const Allocations&) = delete;
  Allocations& operator=(const Allocations&) = delete;

  size_t count() const;
  size_t peak() const;  // the most bytes that were allocated at the same time
};

// Makes the n-th allocation fail, counted from 1, alone or with all that follow. Affects threads that began while a
// FailingAllocation existed, this one or an earlier one. One at a time.
class FailingAllocation {
 public:
  enum Mode { kOne, kAllFrom };
  FailingAllocation(size_t n, Mode mode);
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;

  bool failed() const;  // whether there were n allocations
};

}  // namespace infer::test
