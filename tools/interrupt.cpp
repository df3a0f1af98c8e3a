#include "tools/interrupt.h"

#include <unistd.h>

#include <atomic>

namespace infer {
namespace {

std::atomic<int> presses = 0;
static_assert(std::atomic<int>::is_always_lock_free);

void on_interrupt(int) {
  if (presses.fetch_add(1) == 0) return;
  // Turns off colours; at this point a failed write() does not matter.
  if (isatty(STDERR_FILENO) != 0) [[maybe_unused]]
    const auto n = write(STDERR_FILENO, "\033[0m\n", 5);
  _exit(130);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  presses = 0;
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;  // so that a write which waits for its reader goes on
  sigaction(SIGINT, &action, &before_);
}

InterruptGuard::~InterruptGuard() { sigaction(SIGINT, &before_, nullptr); }

bool InterruptGuard::interrupted() const { return presses > 0; }

}  // namespace infer
