#include "tests/cuda_stand_in/access_checks.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "tests/cuda_stand_in/device_memory.h"
#include "tests/cuda_stand_in/grid.h"

// The program's code and data, as the linker lays them out.
extern "C" const char __executable_start, _end;

namespace cuda_stand_in {
namespace {

bool checks_wanted() {
  static const bool wanted = [] {
    const char* text = std::getenv("INFER_CUDA_STAND_IN_CHECKS");
    return !text || std::strcmp(text, "0") != 0;
  }();
  return wanted;
}

// Who accessed a byte last, in 64 bits: launch 24, block 12, barriers 16, thread 10, whether atomic. 0: nobody. The
// numbers are truncated, so a race may be missed in a huge grid.
uint64_t stamp(const Thread& t, bool atomic) {
  return (t.launch & 0xffffff) << 40 | static_cast<uint64_t>(t.block & 0xfff) << 28 |
         static_cast<uint64_t>(t.barriers & 0xffff) << 12 | static_cast<uint64_t>(t.thread & 0x3ff) << 2 |
         (atomic ? 1u : 0u) << 1 | 1;
}
constexpr uint64_t kLaunchBits = ~uint64_t{0} << 40, kBlockBits = uint64_t{0xfff} << 28;
constexpr uint64_t kBarrierBits = uint64_t{0xffff} << 12, kThreadBits = uint64_t{0x3ff} << 2;

// For each byte of the device's memory, the stamp of the last write.
uint64_t* global_writes() {
  static uint64_t* const stamps = [] {
    void* p = mmap(nullptr, (size_t{16} << 30) * sizeof(uint64_t), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? nullptr : static_cast<uint64_t*>(p);
  }();
  return stamps;
}

// Of a byte of shared memory.
struct Touch {
  uint64_t block_serial = 0;  // 0: nobody
  uint32_t barriers = 0, warp_barriers = 0;
  uint16_t thread = 0;
  bool atomic = false;

  // Whether nothing orders it before what `t` does now.
  bool races_with(const Thread& t, bool also_atomic) const {
    if (block_serial != t.block_serial || barriers != t.barriers || thread == t.thread) return false;
    if (atomic && also_atomic) return false;
    const bool same_warp = thread / warpSize == t.thread / warpSize;
    return !(same_warp && warp_barriers < t.warp_barriers);
  }
};
struct SharedByte {
  Touch write, reads[2];  // by different threads, of different warps where there are several
};
SharedByte* shared_bytes() {
  static const std::unique_ptr<SharedByte[]> bytes = std::make_unique<SharedByte[]>(kMostShared);
  return bytes.get();
}

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

void check_shared(const void* address, size_t bytes, Access access, const void* caller) {
  const Thread& t = running_thread();
  const Touch now = {t.block_serial, t.barriers, t.warp_barriers, static_cast<uint16_t>(t.thread),
                     access == Access::kAtomic};
  SharedByte* byte = shared_bytes() + (static_cast<const char*>(address) - shared_begin());
  for (SharedByte* const end = byte + bytes; byte < end; ++byte) {
    if (byte->write.races_with(t, now.atomic)) race(access, byte->write.thread, "shared memory", caller);
    if (access == Access::kRead) {
      Touch& first = byte->reads[0];
      const bool current = first.block_serial == t.block_serial && first.barriers == t.barriers;
      if (!current || first.thread == t.thread) first = now;
      else if (byte->reads[1].block_serial != t.block_serial || byte->reads[1].barriers != t.barriers ||
               first.thread / warpSize == byte->reads[1].thread / warpSize) {
        byte->reads[1] = now;
      }
      continue;
    }
    for (const Touch& read : byte->reads) {
      if (read.races_with(t, false)) race(access, read.thread, "shared memory", caller);
    }
    byte->write = now;
  }
}

void check_global(const void* address, size_t bytes, Access access, const void* caller) {
  const int device = owner(address, bytes);
  if (device != running_thread().device) {
    const std::string where = device < 0 ? "outside every allocation" : "of another device";
    fail(running_thread_name() + verb(access) + std::to_string(bytes) + " bytes of device memory " + where +
         place_in_code(caller));
  }
  uint64_t* const writes = global_writes();
  if (!writes) return;
  const uint64_t now = stamp(running_thread(), access == Access::kAtomic);
  uint64_t* byte = writes + offset_in_device(address);
  for (uint64_t* const end = byte + bytes; byte < end; ++byte) {
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

}  // namespace

// A GPU cannot access several bytes at an address that is not a multiple of their number.
void check_alignment(const void* address, size_t bytes, const void* caller) {
  if (!in_kernel() || !checks_wanted() || reinterpret_cast<uintptr_t>(address) % bytes == 0) return;
  if (on_running_stack(address)) return;
  fail(running_thread_name() + " accesses " + std::to_string(bytes) + " bytes that are not aligned" +
       place_in_code(caller));
}

void check_access(const void* address, size_t bytes, Access access, const void* caller) {
  if (!in_kernel() || !checks_wanted()) return;
  if (on_running_stack(address)) return;
  if (is_shared(address, bytes)) return check_shared(address, bytes, access, caller);
  if (is_device_address(address)) return check_global(address, bytes, access, caller);
  const bool program = address >= &__executable_start && address < &_end;
  if (access == Access::kRead && (program || is_argument(address))) return;
  fail(running_thread_name() + verb(access) + "memory of the host" + place_in_code(caller));
}

}  // namespace cuda_stand_in

// ---- What the compiler calls ----

using cuda_stand_in::Access;
#define CHECK_CALLER(p, n, access) cuda_stand_in::check_access(p, n, access, __builtin_return_address(0))
#define CHECK_ALIGNED(p, n, access) \
  (cuda_stand_in::check_alignment(p, n, __builtin_return_address(0)), CHECK_CALLER(p, n, access))

extern "C" {
#define CUDA_STAND_IN_HOOKS(n)                                                    \
  void __tsan_read##n(void* p) { CHECK_ALIGNED(p, n, Access::kRead); }            \
  void __tsan_write##n(void* p) { CHECK_ALIGNED(p, n, Access::kWrite); }          \
  void __tsan_unaligned_read##n(void* p) { CHECK_CALLER(p, n, Access::kRead); }   \
  void __tsan_unaligned_write##n(void* p) { CHECK_CALLER(p, n, Access::kWrite); } \
  void __tsan_volatile_read##n(void* p) { CHECK_ALIGNED(p, n, Access::kRead); }   \
  void __tsan_volatile_write##n(void* p) { CHECK_ALIGNED(p, n, Access::kWrite); }
CUDA_STAND_IN_HOOKS(1)
CUDA_STAND_IN_HOOKS(2)
CUDA_STAND_IN_HOOKS(4)
CUDA_STAND_IN_HOOKS(8)
CUDA_STAND_IN_HOOKS(16)
#undef CUDA_STAND_IN_HOOKS
void __tsan_read_range(void* p, unsigned long n) { CHECK_CALLER(p, n, Access::kRead); }
void __tsan_write_range(void* p, unsigned long n) { CHECK_CALLER(p, n, Access::kWrite); }
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
