// Replaces operator new in this test program, so that tests can tell how much memory a piece of code requested.
#include <cstdlib>
#include <new>

#include "tests/unit/ggml-like/gguf_raw.h"

namespace infer::test {

AllocationCount& allocation_count() {
  thread_local AllocationCount count;
  return count;
}

}  // namespace infer::test

void* operator new(size_t n, const std::nothrow_t&) noexcept {
  infer::test::AllocationCount& count = infer::test::allocation_count();
  count.total += n;
  if (n > count.largest) count.largest = n;
  return std::malloc(n ? n : 1);
}
void* operator new(size_t n) {
  if (void* memory = operator new(n, std::nothrow)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
