#include "tests/unit/server/allocations.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace infer::test {
namespace {

struct Counted {
  bool on = false;
  size_t count = 0, now = 0, peak = 0;
};
thread_local Counted counted;

std::atomic<bool> watching = false;
// Per thread: whether its first allocation was made while a FailingAllocation existed. Other threads are not affected.
enum class Birth { kUnknown, kBefore, kWatched };
thread_local Birth birth = Birth::kUnknown;

std::atomic<size_t> n_allocated = 0, fail_at = 0;
std::atomic<bool> fails_on = false;

bool has_to_fail() {
  if (birth == Birth::kUnknown) birth = watching ? Birth::kWatched : Birth::kBefore;
  if (birth == Birth::kBefore || !watching) return false;
  const size_t n = ++n_allocated;
  return n == fail_at || (fails_on && n > fail_at);
}

// Not inlined, or the compiler would warn about new combined with free().
[[gnu::noinline]] void* allocate(size_t size, size_t alignment) {
  if (has_to_fail()) return nullptr;
  void* const memory = alignment == 0 ? std::malloc(size == 0 ? 1 : size)
                                      : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory && counted.on) {
    ++counted.count;
    counted.now += malloc_usable_size(memory);
    counted.peak = counted.now > counted.peak ? counted.now : counted.peak;
  }
  return memory;
}

void* allocate_or_throw(size_t size, size_t alignment = 0) {
  if (void* const memory = allocate(size, alignment)) return memory;
  throw std::bad_alloc();
}

[[gnu::noinline]] void release(void* memory) {
  if (memory && counted.on) {
    const size_t size = malloc_usable_size(memory);
    counted.now -= size < counted.now ? size : counted.now;
  }
  std::free(memory);
}

}  // namespace

Allocations::Allocations() { counted = {true, 0, 0, 0}; }
Allocations::~Allocations() { counted.on = false; }
size_t Allocations::count() const { return counted.count; }
size_t Allocations::peak() const { return counted.peak; }

FailingAllocation::FailingAllocation(size_t n, Mode mode) {
  n_allocated = 0;
  fail_at = n;
  fails_on = mode == kAllFrom;
  watching = true;
}
FailingAllocation::~FailingAllocation() { watching = false; }
bool FailingAllocation::failed() const { return n_allocated >= fail_at; }

}  // namespace infer::test

void* operator new(size_t size) { return infer::test::allocate_or_throw(size); }
void* operator new[](size_t size) { return infer::test::allocate_or_throw(size); }
void* operator new(size_t size, std::align_val_t alignment) {
  return infer::test::allocate_or_throw(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return infer::test::allocate_or_throw(size, static_cast<size_t>(alignment));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept { return infer::test::allocate(size, 0); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return infer::test::allocate(size, 0); }
void operator delete(void* memory) noexcept { infer::test::release(memory); }
void operator delete[](void* memory) noexcept { infer::test::release(memory); }
void operator delete(void* memory, size_t) noexcept { infer::test::release(memory); }
void operator delete[](void* memory, size_t) noexcept { infer::test::release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { infer::test::release(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { infer::test::release(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { infer::test::release(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { infer::test::release(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { infer::test::release(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { infer::test::release(memory); }
