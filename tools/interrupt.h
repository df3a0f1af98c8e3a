// Ctrl-C while the program works: the first press asks it to stop, a second one ends it at once (exit code 130).
#pragma once

#include <signal.h>

namespace infer {

// In force as long as it lives; one at a time.
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
