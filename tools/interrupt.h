// Ctrl-C during work: the first press asks the program to stop, a second one ends it immediately (exit code 130) or is
// ignored.
#pragma once

#include <signal.h>

namespace infer {

// The exit code of a program that Ctrl-C stopped.
inline constexpr int kInterruptedCode = 130;

// Active during its lifetime. A guard inside another counts its own presses; the outer one forgets its.
class InterruptGuard {
 public:
  enum class Second { kEnds, kIgnored };
  explicit InterruptGuard(Second second = Second::kEnds);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool interrupted() const;

 private:
  struct sigaction before_ = {};
  bool second_ended_before_;
};

}  // namespace infer
