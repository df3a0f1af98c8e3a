#include "tests/cuda_stand_in/access_checks.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/cuda_stand_in/device_memory.h"
#include "tests/cuda_stand_in/fiber.h"
#include "tests/cuda_stand_in/grid.h"

// The program's code and data, as the linker lays them out.
extern "C" const char __executable_start, _end;

namespace cuda_stand_in {
namespace {

const bool checks_wanted = [] {
  const char* text = std::getenv("INFER_CUDA_STAND_IN_CHECKS");
  return !text || std::strcmp(text, "0") != 0;
}();

// Who accessed a byte of global memory last, in 64 bits: launch 24, block 12, barriers 16, thread 10, whether atomic.
// 0: nobody. The numbers are truncated, so a race may be missed in a huge grid.
uint64_t stamp(const Thread& t, bool atomic) {
  return (t.launch & 0xffffff) << 40 | static_cast<uint64_t>(t.block & 0xfff) << 28 |
         static_cast<uint64_t>(t.barriers & 0xffff) << 12 | static_cast<uint64_t>(t.thread & 0x3ff) << 2 |
         (atomic ? 1u : 0u) << 1 | 1;
}
constexpr uint64_t kLaunchBits = ~uint64_t{0} << 40, kBlockBits = uint64_t{0xfff} << 28;
constexpr uint64_t kBarrierBits = uint64_t{0xffff} << 12, kThreadBits = uint64_t{0x3ff} << 2;

// For each byte of the devices' memory, the stamp of the last write.
uint64_t* global_writes() {
  static uint64_t* const stamps = [] {
    void* p = mmap(nullptr, kDeviceAddresses * sizeof(uint64_t), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? nullptr : static_cast<uint64_t*>(p);
  }();
  return stamps;
}

// Who accessed a byte of shared memory, in 64 bits: epoch 36, the warp's barriers 17, thread 10, whether atomic.
class Touch {
 public:
  Touch() = default;
  Touch(const Thread& t, bool atomic)
      : bits_(t.epoch << kEpochBit | static_cast<uint64_t>(t.warp_barriers) << kBarrierBit | t.thread << 1 |
              (atomic ? 1u : 0u)) {}
  uint32_t thread() const { return bits_ >> 1 & (kMostThreads - 1); }
  bool same_epoch(Touch other) const { return (bits_ ^ other.bits_) >> kEpochBit == 0; }
  bool same_thread(Touch other) const { return thread() == other.thread(); }
  bool same_warp(Touch other) const { return thread() / warpSize == other.thread() / warpSize; }
  // Whether nothing orders it before `now`.
  bool races_with(Touch now, bool also_atomic) const {
    if (!same_epoch(now) || same_thread(now)) return false;
    if (bits_ & now.bits_ & 1 && also_atomic) return false;
    return !(same_warp(now) && bits_ >> kBarrierBit < now.bits_ >> kBarrierBit);
  }

 private:
  static constexpr int kBarrierBit = 11, kEpochBit = 28;
  static_assert(kMostThreads == 1 << 10 && kMostWarpBarriers < 1 << (kEpochBit - kBarrierBit));
  uint64_t bits_ = 0;  // epochs count from 1
};
struct SharedByte {
  Touch write, reads[2];  // by different threads, of different warps where there are several
};
SharedByte shared_bytes[kMostShared];

std::string place_in_code(const void* caller) {
  Dl_info info;
  char text[64];
  if (!dladdr(caller, &info)) return "";
  std::snprintf(text, sizeof text, ", at +%#zx of ",
                static_cast<size_t>(static_cast<const char*>(caller) - static_cast<const char*>(info.dli_fbase)));
  return text + std::string(info.dli_fname);
}

const char* verb(Access access) { return access == Access::kRead ? " reads " : " writes "; }

[[noreturn]] void race(Access access, uint32_t other, const char* memory, const void* caller) {
  fail(running_thread_name() + verb(access) + memory + " that thread " + std::to_string(other) +
       " uses, without a barrier between them" + place_in_code(caller));
}

inline void check_shared(const void* address, size_t bytes, Access access, const void* caller) {
  const Touch now(running_thread, access == Access::kAtomic);
  SharedByte* byte = shared_bytes + (static_cast<const char*>(address) - shared_begin);
  for (SharedByte* const end = byte + bytes; byte < end; ++byte) {
    if (byte->write.races_with(now, access == Access::kAtomic)) {
      race(access, byte->write.thread(), "shared memory", caller);
    }
    Touch &first = byte->reads[0], &second = byte->reads[1];
    if (access == Access::kRead) {
      if (!first.same_epoch(now) || first.same_thread(now)) first = now;
      else if (!second.same_epoch(now) || first.same_warp(second)) second = now;
      continue;
    }
    for (const Touch read : {first, second}) {
      if (read.races_with(now, false)) race(access, read.thread(), "shared memory", caller);
    }
    byte->write = now;
  }
}

[[noreturn]] void outside(const void* address, size_t bytes, Access access, const void* caller) {
  const std::string where = owner(address, bytes) < 0 ? "outside every allocation" : "of another device";
  fail(running_thread_name() + verb(access) + std::to_string(bytes) + " bytes of device memory " + where +
       place_in_code(caller));
}

inline void check_global(const void* address, size_t bytes, Access access, const void* caller) {
  if (owner(address, bytes) != running_thread.device) outside(address, bytes, access, caller);
  const size_t at = offset_in_device(address);
  const auto launch = static_cast<uint32_t>(running_thread.launch);
  Unit *const units = device_units + at / kUnit, *const end_of_units = device_units + (at + bytes - 1) / kUnit + 1;
  bool written = access != Access::kRead;
  for (Unit* unit = units; unit < end_of_units; ++unit) {
    written |= unit->launch == launch;
    if (access != Access::kRead) unit->launch = launch;
  }
  if (!written) return;
  uint64_t* const writes = global_writes();
  if (!writes) return;
  const uint64_t now = stamp(running_thread, access == Access::kAtomic);
  for (uint64_t *byte = writes + at, *const end = byte + bytes; byte < end; ++byte) {
    const uint64_t differs = *byte ^ now;
    const bool same_launch = *byte != 0 && (differs & kLaunchBits) == 0;
    const bool both_atomic = access == Access::kAtomic && (*byte & 2);
    if (same_launch && !both_atomic) {
      const bool other_block = differs & kBlockBits, other_thread = differs & kThreadBits;
      if (other_block || (other_thread && !(differs & kBarrierBits))) {
        race(access, static_cast<uint32_t>((*byte & kThreadBits) >> 2),
             other_block ? "device memory that another block writes, and" : "device memory", caller);
      }
    }
    if (access != Access::kRead) *byte = now;
  }
}

inline bool on_running_stack(const void* address) {
  return static_cast<size_t>(static_cast<const char*>(address) - running_thread.stack) < Fiber::kStackBytes;
}
inline bool is_shared_range(const void* address, size_t bytes) {
  return static_cast<size_t>(static_cast<const char*>(address) - shared_begin) <= kMostShared - bytes;
}

[[noreturn]] void misaligned(size_t bytes, const void* caller) {
  fail(running_thread_name() + " accesses " + std::to_string(bytes) + " bytes that are not aligned" +
       place_in_code(caller));
}

void check_elsewhere(const void* address, Access access, const void* caller) {
  const bool program = address >= &__executable_start && address < &_end;
  if (access == Access::kRead && (program || is_argument(address))) return;
  fail(running_thread_name() + verb(access) + "memory of the host" + place_in_code(caller));
}

// Called at every access that a kernel makes, so it is inlined into each hook below.
__attribute__((always_inline)) inline void check(const void* address, size_t bytes, bool aligned, Access access,
                                                 const void* caller) {
  if (!running_thread.stack || on_running_stack(address) || !checks_wanted) return;
  if (aligned && reinterpret_cast<uintptr_t>(address) % bytes != 0) misaligned(bytes, caller);
  if (is_device_address(address)) return check_global(address, bytes, access, caller);
  if (is_shared_range(address, bytes)) return check_shared(address, bytes, access, caller);
  check_elsewhere(address, access, caller);
}

}  // namespace

bool is_shared(const void* address, size_t bytes) { return is_shared_range(address, bytes); }

void check_access(const void* address, size_t bytes, Access access, const void* caller) {
  check(address, bytes, false, access, caller);
}

// A GPU cannot access several bytes at an address that is not a multiple of their number.
void check_alignment(const void* address, size_t bytes, const void* caller) {
  if (!running_thread.stack || on_running_stack(address) || !checks_wanted) return;
  if (reinterpret_cast<uintptr_t>(address) % bytes != 0) misaligned(bytes, caller);
}

}  // namespace cuda_stand_in

// ---- What the compiler calls ----

using cuda_stand_in::Access;
#define CHECK(p, n, aligned, access) cuda_stand_in::check(p, n, aligned, access, __builtin_return_address(0))

extern "C" {
#define CUDA_STAND_IN_HOOKS(n)                                                    \
  void __tsan_read##n(void* p) { CHECK(p, n, true, Access::kRead); }              \
  void __tsan_write##n(void* p) { CHECK(p, n, true, Access::kWrite); }            \
  void __tsan_unaligned_read##n(void* p) { CHECK(p, n, false, Access::kRead); }   \
  void __tsan_unaligned_write##n(void* p) { CHECK(p, n, false, Access::kWrite); } \
  void __tsan_volatile_read##n(void* p) { CHECK(p, n, true, Access::kRead); }     \
  void __tsan_volatile_write##n(void* p) { CHECK(p, n, true, Access::kWrite); }
CUDA_STAND_IN_HOOKS(1)
CUDA_STAND_IN_HOOKS(2)
CUDA_STAND_IN_HOOKS(4)
CUDA_STAND_IN_HOOKS(8)
CUDA_STAND_IN_HOOKS(16)
#undef CUDA_STAND_IN_HOOKS
void __tsan_read_range(void* p, unsigned long n) { CHECK(p, n, false, Access::kRead); }
void __tsan_write_range(void* p, unsigned long n) { CHECK(p, n, false, Access::kWrite); }
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_init() {}
int __tsan_atomic32_fetch_add(volatile int* p, int v, int) { return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST); }
int __tsan_atomic32_load(const volatile int* p, int) { return __atomic_load_n(p, __ATOMIC_SEQ_CST); }
unsigned char __tsan_atomic8_load(const volatile unsigned char* p, int) { return __atomic_load_n(p, __ATOMIC_SEQ_CST); }
long __tsan_atomic64_load(const volatile long* p, int) { return __atomic_load_n(p, __ATOMIC_SEQ_CST); }
long __tsan_atomic64_fetch_add(volatile long* p, long v, int) { return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST); }
}
