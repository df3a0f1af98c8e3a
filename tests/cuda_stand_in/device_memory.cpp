#include "tests/cuda_stand_in/device_memory.h"

#include <sys/mman.h>

#include <algorithm>
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

constexpr size_t kGap = kUnit;                     // bytes between allocations
constexpr size_t kMostFilled = size_t{256} << 20;  // bytes; all of a test that takes all memory would take seconds

// Zeros, which take memory only where they are used.
template <typename T>
T* reserve(size_t n) {
  void* p = mmap(nullptr, n * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) std::abort();
  return static_cast<T*>(p);
}

size_t round_up(size_t bytes) { return (bytes + kUnit - 1) / kUnit * kUnit; }

class Region {
 public:
  void* allocate(size_t bytes, int device) {
    const size_t room = round_up(bytes) + kGap;
    if (bytes > free(device)) return nullptr;
    size_t at = kUnit;
    for (const auto& [start, index] : by_offset_) {
      if (start - at >= room) break;
      at = round_up(device_allocations[index].end) + kGap;
    }
    if (at + room > kDeviceAddresses) return nullptr;
    if (unused_.empty()) {
      unused_.push_back(static_cast<uint32_t>(device_allocations.size()));
      device_allocations.emplace_back();
    }
    const uint32_t index = unused_.back();
    unused_.pop_back();
    by_offset_[at] = index;
    device_allocations[index] = {at, at + bytes, device};
    set_units(device_allocations[index], index);
    used_[static_cast<size_t>(device)] += bytes;
    char* const p = device_memory + at;
    ASAN_POISON_MEMORY_REGION(p - kGap, room + kGap);
    ASAN_UNPOISON_MEMORY_REGION(p, bytes);
    std::memset(p, 0xff, std::min(bytes, kMostFilled));
    return p;
  }

  bool release(void* p) {
    const auto found = is_device_address(p) ? by_offset_.find(offset_in_device(p)) : by_offset_.end();
    if (found == by_offset_.end()) return false;
    const Allocation gone = device_allocations[found->second];
    ASAN_POISON_MEMORY_REGION(p, gone.end - gone.begin);
    used_[static_cast<size_t>(gone.device)] -= gone.end - gone.begin;
    const size_t page = 4096, from = (gone.begin + page - 1) / page * page, to = gone.end / page * page;
    if (to > from) madvise(device_memory + from, to - from, MADV_DONTNEED);
    set_units(gone, 0);
    unused_.push_back(found->second);
    by_offset_.erase(found);
    return true;
  }

  size_t free(int device) const { return settings().memory_bytes - used_[static_cast<size_t>(device)]; }

 private:
  static void set_units(const Allocation& a, uint32_t index) {
    for (size_t unit = a.begin / kUnit; unit < round_up(a.end) / kUnit; ++unit) device_units[unit].allocation = index;
  }

  std::vector<size_t> used_ = std::vector<size_t>(static_cast<size_t>(kMostDevices), 0);  // bytes, by device
  std::map<size_t, uint32_t> by_offset_;                                                  // indices
  std::vector<uint32_t> unused_;                                                          // indices
};

Region& region() {
  static Region& the_region = *new Region;  // outlives every static object of the program
  return the_region;
}

}  // namespace

char* const device_memory = reserve<char>(kDeviceAddresses);
Unit* const device_units = reserve<Unit>(kDeviceAddresses / kUnit);
std::vector<Allocation>& device_allocations = *new std::vector<Allocation>(1);

void* allocate(size_t bytes, int device) { return region().allocate(bytes, device); }
bool release(void* p) { return region().release(p); }
size_t memory_free(int device) { return region().free(device); }

}  // namespace cuda_stand_in
