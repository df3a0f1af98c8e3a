// Ctrl-C during work: the first press asks the program to stop, a second one ends it immediately (exit code 130).
#pragma once

#include <signal.h>

namespace infer {

// Active during its lifetime; one at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool interrupted() const;

 private:
  struct sigaction before_ = {};
};

}  // namespace infer
