#include "tests/cuda_stand_in/device_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "tests/cuda_stand_in/settings.h"

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
    void* p = mmap(nullptr, kAddresses, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) std::abort();
    begin_ = static_cast<char*>(p);
  }

  void* allocate(size_t bytes, int device) {
    const size_t room = (bytes + kAlignment - 1) / kAlignment * kAlignment + kGap;
    if (bytes > free(device)) return nullptr;
    size_t at = kAlignment;
    for (const auto& [start, allocation] : allocations_) {
      if (start - at >= room) break;
      at = (start + allocation.bytes + kAlignment - 1) / kAlignment * kAlignment + kGap;
    }
    if (at + room > kAddresses) return nullptr;
    allocations_[at] = {bytes, device};
    last_ = allocations_.end();
    used_[static_cast<size_t>(device)] += bytes;
    ASAN_POISON_MEMORY_REGION(begin_ + at - kGap, room + kGap);
    ASAN_UNPOISON_MEMORY_REGION(begin_ + at, bytes);
    std::memset(begin_ + at, 0xff, bytes);
    return begin_ + at;
  }

  bool release(void* p) {
    const auto found = is_device(p) ? allocations_.find(offset(p)) : allocations_.end();
    if (found == allocations_.end()) return false;
    const auto [bytes, device] = found->second;
    ASAN_POISON_MEMORY_REGION(p, bytes);
    used_[static_cast<size_t>(device)] -= bytes;
    const size_t page = 4096, from = (found->first + page - 1) / page * page, to = (found->first + bytes) / page * page;
    if (to > from) madvise(begin_ + from, to - from, MADV_DONTNEED);
    allocations_.erase(found);
    last_ = allocations_.end();
    return true;
  }

  bool is_device(const void* p) const { return p >= begin_ && p < begin_ + kAddresses; }
  size_t offset(const void* p) const { return static_cast<size_t>(static_cast<const char*>(p) - begin_); }
  // The device of the allocation that has all of the bytes; -1 if there is none.
  int owner(const void* p, size_t bytes) {
    const size_t at = offset(p);
    if (last_ == allocations_.end() || !last_->second.covers(last_->first, at, bytes)) {
      auto next = allocations_.upper_bound(at);
      if (next == allocations_.begin()) return -1;
      --next;
      if (!next->second.covers(next->first, at, bytes)) return -1;
      last_ = next;
    }
    return last_->second.device;
  }
  size_t free(int device) const { return settings().memory_bytes - used_[static_cast<size_t>(device)]; }

 private:
  static constexpr size_t kAddresses = size_t{16} << 30;
  struct Allocation {
    size_t bytes;
    int device;
    bool covers(size_t start, size_t at, size_t n) const { return at >= start && at + n <= start + bytes; }
  };
  using Allocations = std::map<size_t, Allocation>;  // by offset
  char* begin_ = nullptr;
  std::vector<size_t> used_ = std::vector<size_t>(static_cast<size_t>(kMostDevices), 0);  // bytes, by device
  Allocations allocations_;
  Allocations::iterator last_ = allocations_.end();  // of the last access
};

Region& region() {
  static Region& the_region = *new Region;  // outlives every static object of the program
  return the_region;
}

}  // namespace

void* allocate(size_t bytes, int device) { return region().allocate(bytes, device); }
bool release(void* p) { return region().release(p); }
size_t memory_free(int device) { return region().free(device); }
bool is_device_address(const void* p) { return region().is_device(p); }
int owner(const void* p, size_t bytes) { return is_device_address(p) ? region().owner(p, bytes) : -1; }
size_t offset_in_device(const void* p) { return region().offset(p); }

}  // namespace cuda_stand_in
