#include "tests/cuda_stand_in/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>

// The address sanitizer has to know which stack is in use.
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace cuda_stand_in {

#ifdef __SANITIZE_ADDRESS__
namespace {
const void* outer_stack = nullptr;
size_t outer_bytes = 0;
}  // namespace
#endif

Fiber::Fiber() {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* p =
      mmap(nullptr, kStackBytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  mprotect(p, page, PROT_NONE);  // stacks grow down
  stack_ = static_cast<char*>(p) + page;
}

Fiber::~Fiber() {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  munmap(stack_ - page, kStackBytes + page);
}

void Fiber::start(void (*entry)(void*), void* argument) {
  entry_ = entry;
  argument_ = argument;
  if (!ended_) fresh_ = true;  // abandoned
  ended_ = false;
}

void Fiber::run(unsigned high, unsigned low) {
  auto* self = reinterpret_cast<Fiber*>(static_cast<uintptr_t>(high) << 32 | low);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(nullptr, &outer_stack, &outer_bytes);
#endif
  for (;;) {  // start() after the end goes on here
    self->entry_(self->argument_);
    self->ended_ = true;
    self->yield();
  }
}

__attribute__((noinline)) void Fiber::resume() {
#ifdef __SANITIZE_ADDRESS__
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, stack_, kStackBytes);
#endif
  if (_setjmp(outside_) == 0) {
    if (!fresh_) _longjmp(inside_, 1);
    fresh_ = false;
    getcontext(&beginning_);
    beginning_.uc_stack.ss_sp = stack_;
    beginning_.uc_stack.ss_size = kStackBytes;
    beginning_.uc_link = nullptr;
    const uintptr_t self = reinterpret_cast<uintptr_t>(this);
    makecontext(&beginning_, reinterpret_cast<void (*)()>(&run), 2, static_cast<unsigned>(self >> 32),
                static_cast<unsigned>(self));
    setcontext(&beginning_);
  }
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

__attribute__((noinline)) void Fiber::yield() {
#ifdef __SANITIZE_ADDRESS__
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, outer_stack, outer_bytes);
#endif
  if (_setjmp(inside_) == 0) _longjmp(outside_, 1);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(fake, &outer_stack, &outer_bytes);
#endif
}

}  // namespace cuda_stand_in
