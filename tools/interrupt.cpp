#include "tools/interrupt.h"

#include <unistd.h>

#include <atomic>

namespace infer {
namespace {

std::atomic<int> presses = 0;
std::atomic<bool> second_ends = true;
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void on_interrupt(int) {
  if (presses.fetch_add(1) == 0 || !second_ends) return;
  // Resets colours; a failed write() does not matter at this point.
  if (isatty(STDERR_FILENO) != 0) [[maybe_unused]]
    const auto n = write(STDERR_FILENO, "\033[0m\n", 5);
  _exit(kInterruptedCode);
}

}  // namespace

InterruptGuard::InterruptGuard(Second second) {
  presses = 0;
  second_ended_before_ = second_ends.exchange(second == Second::kEnds);
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;  // so that a write blocked on its reader continues
  sigaction(SIGINT, &action, &before_);
}

InterruptGuard::~InterruptGuard() {
  second_ends = second_ended_before_;
  sigaction(SIGINT, &before_, nullptr);
}

bool InterruptGuard::interrupted() const { return presses > 0; }

}  // namespace infer
