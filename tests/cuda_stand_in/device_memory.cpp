#include "tests/cuda_stand_in/device_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <map>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, bytes)
#define ASAN_UNPOISON_MEMORY_REGION(p, bytes)
#endif

namespace cuda_stand_in {
namespace {

constexpr size_t kAlignment = 256, kGap = 256;  // bytes between allocations

class Region {
 public:
  Region() {
    if (const char* text = std::getenv("INFER_CUDA_STAND_IN_MEMORY_MB"))
      total_ = std::strtoull(text, nullptr, 10) << 20;
    if (total_ == 0 || total_ > kMemoryBytes) total_ = kMemoryBytes;
    void* p = mmap(nullptr, kAddresses, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) std::abort();
    begin_ = static_cast<char*>(p);
  }

  void* allocate(size_t bytes) {
    const size_t room = (bytes + kAlignment - 1) / kAlignment * kAlignment + kGap;
    if (bytes > total_ - used_) return nullptr;
    size_t at = kAlignment;
    for (const auto& [start, size] : allocations_) {
      if (start - at >= room) break;
      at = (start + size + kAlignment - 1) / kAlignment * kAlignment + kGap;
    }
    if (at + room > kAddresses) return nullptr;
    allocations_[at] = bytes;
    last_ = allocations_.end();
    used_ += bytes;
    ASAN_POISON_MEMORY_REGION(begin_ + at - kGap, room + kGap);
    ASAN_UNPOISON_MEMORY_REGION(begin_ + at, bytes);
    std::memset(begin_ + at, 0xff, bytes);
    return begin_ + at;
  }

  bool release(void* p) {
    const auto found = is_device(p) ? allocations_.find(offset(p)) : allocations_.end();
    if (found == allocations_.end()) return false;
    ASAN_POISON_MEMORY_REGION(p, found->second);
    used_ -= found->second;
    const size_t page = 4096, from = (found->first + page - 1) / page * page,
                 to = (found->first + found->second) / page * page;
    if (to > from) madvise(begin_ + from, to - from, MADV_DONTNEED);
    allocations_.erase(found);
    last_ = allocations_.end();
    return true;
  }

  bool is_device(const void* p) const { return p >= begin_ && p < begin_ + kAddresses; }
  size_t offset(const void* p) const { return static_cast<size_t>(static_cast<const char*>(p) - begin_); }
  bool covers(const void* p, size_t bytes) {
    const size_t at = offset(p);
    if (last_ != allocations_.end() && at >= last_->first && at + bytes <= last_->first + last_->second) return true;
    auto next = allocations_.upper_bound(at);
    if (next == allocations_.begin()) return false;
    --next;
    if (at + bytes > next->first + next->second) return false;
    last_ = next;
    return true;
  }
  size_t total() const { return total_; }
  size_t used() const { return used_; }

 private:
  static constexpr size_t kAddresses = size_t{16} << 30;
  char* begin_ = nullptr;
  size_t total_ = kMemoryBytes, used_ = 0;
  std::map<size_t, size_t> allocations_;                          // offset to bytes
  std::map<size_t, size_t>::iterator last_ = allocations_.end();  // of the last access
};

Region& region() {
  static Region& the_region = *new Region;  // outlives every static object of the program
  return the_region;
}

}  // namespace

void* allocate(size_t bytes) { return region().allocate(bytes); }
bool release(void* p) { return region().release(p); }
size_t memory_total() { return region().total(); }
size_t memory_free() { return region().total() - region().used(); }
bool is_device_address(const void* p) { return region().is_device(p); }
bool is_allocated(const void* p, size_t bytes) { return is_device_address(p) && region().covers(p, bytes); }
size_t offset_in_device(const void* p) { return region().offset(p); }

}  // namespace cuda_stand_in
