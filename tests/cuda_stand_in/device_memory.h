// The memory of the simulated device: one range of addresses, in which allocations lie apart.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuda_stand_in {

inline constexpr size_t kMemoryBytes = size_t{8}
                                       << 30;  // of the device, unless INFER_CUDA_STAND_IN_MEMORY_MB says less

void* allocate(size_t bytes);  // 256-byte aligned, filled with bytes of 0xff; null if there is not as much memory
bool release(void* p);         // false if it is no allocation
size_t memory_total();
size_t memory_free();

// Whether the address belongs to the device, allocated or not.
bool is_device_address(const void* p);
// Whether the bytes are in one allocation.
bool is_allocated(const void* p, size_t bytes);
size_t offset_in_device(const void* p);  // REQUIRES is_device_address()

}  // namespace cuda_stand_in
