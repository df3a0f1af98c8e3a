// A stack of its own for one thread of a block. The thread that resumes a fiber continues when the fiber yields or
// ends.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>

namespace cuda_stand_in {

class Fiber {
 public:
  static constexpr size_t kStackBytes = 256 << 10;

  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next resume() begins `entry(argument)`, even if an earlier one has not ended: that one is abandoned.
  void start(void (*entry)(void*), void* argument);
  void resume();
  void yield();  // from inside
  bool ended() const { return ended_; }
  bool has(const void* address) const { return address >= stack_ && address < stack_ + kStackBytes; }

 private:
  static void run(unsigned high, unsigned low);

  char* stack_;
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
  bool fresh_ = true, ended_ = true;
  ucontext_t beginning_;
  // Switching by _longjmp leaves the signal mask alone and makes no system call, unlike swapcontext.
  jmp_buf inside_, outside_;
};

}  // namespace cuda_stand_in
