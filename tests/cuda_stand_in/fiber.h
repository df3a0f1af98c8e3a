// A stack of its own for one thread of a block. The thread that resumes a fiber continues when the fiber yields or
// ends.
#pragma once

#include <cstddef>

#if defined(__x86_64__) && !defined(INFER_PORTABLE_FIBERS)
#define INFER_ASSEMBLY_FIBERS
#ifndef __SANITIZE_ADDRESS__
#define INFER_FIBERS_PASS
#endif
#else
#include <setjmp.h>
#include <ucontext.h>
#endif

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
#ifdef INFER_FIBERS_PASS
  // From inside: like yield(), after which whoever resumed this one resumes `other`.
  void pass(Fiber& other);
#endif
  bool ended() const { return ended_; }
  const char* stack() const { return stack_; }  // [kStackBytes]

 private:
  void run();

  char* stack_;
  size_t used_bytes_;  // of it
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
  bool fresh_ = true, ended_ = true;
#ifdef INFER_ASSEMBLY_FIBERS
  static void begin();
  void prepare();

  void *inside_ = nullptr, *outside_ = nullptr;  // the stack pointers of the two that wait in turn
#else
  static void begin(unsigned high, unsigned low);

  ucontext_t beginning_;
  // Switching by _longjmp leaves the signal mask alone and makes no system call, unlike swapcontext.
  jmp_buf inside_, outside_;
#endif
};

}  // namespace cuda_stand_in
