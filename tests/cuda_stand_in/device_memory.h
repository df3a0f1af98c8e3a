// The memory of the simulated devices: one range of addresses, with gaps between allocations. Callers hold the lock of
// runtime.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuda_stand_in {

// 256-byte aligned, filled with bytes of 0xff; null if the device does not have as much memory.
void* allocate(size_t bytes, int device);
bool release(void* p);  // false if it is not an allocation
size_t memory_free(int device);

// Whether the address belongs to a device, allocated or not.
bool is_device_address(const void* p);
// The device whose memory the bytes are in, all in one allocation; -1 if they are not.
int owner(const void* p, size_t bytes);
size_t offset_in_device(const void* p);  // REQUIRES is_device_address()

}  // namespace cuda_stand_in
