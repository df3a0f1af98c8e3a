// The memory of the simulated devices: one range of addresses, with gaps between allocations. Callers hold the lock of
// runtime.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cuda_stand_in {

// 256-byte aligned, the first 256 MiB filled with bytes of 0xff; null if the device does not have as much memory.
void* allocate(size_t bytes, int device);
bool release(void* p);  // false if it is not an allocation
size_t memory_free(int device);

// The addresses of all devices.
inline constexpr size_t kDeviceAddresses = size_t{16} << 30;
extern char* const device_memory;  // [kDeviceAddresses]

// Whether the address belongs to a device, allocated or not.
inline bool is_device_address(const void* p) {
  return static_cast<size_t>(static_cast<const char*>(p) - device_memory) < kDeviceAddresses;
}
// REQUIRES is_device_address()
inline size_t offset_in_device(const void* p) {
  return static_cast<size_t>(static_cast<const char*>(p) - device_memory);
}

// What the memory consists of: no two allocations share a unit.
inline constexpr size_t kUnit = 256;
struct Unit {
  uint32_t allocation = 0;  // index in device_allocations; 0: none
  uint32_t launch = 0;      // the last one in which a kernel wrote here, modulo 2^32
};
struct Allocation {
  size_t begin = 0, end = 0;  // offsets
  int device = -1;
};
extern Unit* const device_units;  // [kDeviceAddresses / kUnit]
extern std::vector<Allocation>& device_allocations;

// The device whose memory the bytes are in, all in one allocation; -1 if they are not.
inline int owner(const void* p, size_t bytes) {
  if (!is_device_address(p)) return -1;
  const size_t at = offset_in_device(p);
  const Allocation& a = device_allocations[device_units[at / kUnit].allocation];
  return at + bytes <= a.end ? a.device : -1;
}

}  // namespace cuda_stand_in
