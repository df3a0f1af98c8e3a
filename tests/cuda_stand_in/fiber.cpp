#include "tests/cuda_stand_in/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <new>

// The address sanitizer has to know which stack is in use.
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

#ifdef INFER_ASSEMBLY_FIBERS
// Saves the registers that a function must preserve and the stack pointer, and goes on at the other stack pointer. A
// tenth of the time of _setjmp and _longjmp.
extern "C" void cuda_stand_in_switch(void** from, void* to);
asm(R"(
.text
.p2align 4
.type cuda_stand_in_switch, @function
cuda_stand_in_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size cuda_stand_in_switch, .-cuda_stand_in_switch
)");
#endif

namespace cuda_stand_in {
namespace {

constexpr size_t kColour = 320;  // bytes; a multiple of 16

#ifdef __SANITIZE_ADDRESS__
const void* outer_stack = nullptr;
size_t outer_bytes = 0;
#endif
#ifdef INFER_ASSEMBLY_FIBERS
thread_local Fiber* beginning = nullptr;
#endif

}  // namespace

Fiber::Fiber() {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  // The ends of stacks differ in their place in a page: were it the same, they would displace each other from the
  // processor's cache, which only has a few lines for each such place.
  static std::atomic<size_t> n_fibers = 0;
  used_bytes_ = kStackBytes - n_fibers++ * kColour % page;
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

void Fiber::run() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(nullptr, &outer_stack, &outer_bytes);
#endif
  for (;;) {  // start() after the end goes on here
    entry_(argument_);
    ended_ = true;
    yield();
  }
}

#ifdef INFER_ASSEMBLY_FIBERS
void Fiber::begin() { beginning->run(); }

void Fiber::prepare() {
  if (!fresh_) return;
  fresh_ = false;
  beginning = this;
  // As if begin() had been called: where to return to, which it never does, on top; below, what a switch takes off.
  void** top = reinterpret_cast<void**>(stack_ + used_bytes_) - 8;
  for (int i = 0; i < 8; ++i) top[i] = nullptr;
  top[6] = reinterpret_cast<void*>(&begin);
  inside_ = top;
}
#else
void Fiber::begin(unsigned high, unsigned low) {
  reinterpret_cast<Fiber*>(static_cast<uintptr_t>(high) << 32 | low)->run();
}
#endif

__attribute__((noinline)) void Fiber::resume() {
#ifdef __SANITIZE_ADDRESS__
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, stack_, kStackBytes);
#endif
#ifdef INFER_ASSEMBLY_FIBERS
  prepare();
  cuda_stand_in_switch(&outside_, inside_);
#else
  if (_setjmp(outside_) == 0) {
    if (!fresh_) _longjmp(inside_, 1);
    fresh_ = false;
    getcontext(&beginning_);
    beginning_.uc_stack.ss_sp = stack_;
    beginning_.uc_stack.ss_size = used_bytes_;
    beginning_.uc_link = nullptr;
    const uintptr_t self = reinterpret_cast<uintptr_t>(this);
    makecontext(&beginning_, reinterpret_cast<void (*)()>(&begin), 2, static_cast<unsigned>(self >> 32),
                static_cast<unsigned>(self));
    setcontext(&beginning_);
  }
#endif
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

__attribute__((noinline)) void Fiber::yield() {
#ifdef __SANITIZE_ADDRESS__
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, outer_stack, outer_bytes);
#endif
#ifdef INFER_ASSEMBLY_FIBERS
  cuda_stand_in_switch(&inside_, outside_);
#else
  if (_setjmp(inside_) == 0) _longjmp(outside_, 1);
#endif
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(fake, &outer_stack, &outer_bytes);
#endif
}

#ifdef INFER_FIBERS_PASS
__attribute__((noinline)) void Fiber::pass(Fiber& other) {
  other.outside_ = outside_;
  other.prepare();
  cuda_stand_in_switch(&inside_, other.inside_);
}
#endif

}  // namespace cuda_stand_in
