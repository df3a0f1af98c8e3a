// What kernels may do with memory. Their objects are compiled with -fsanitize=thread, which makes the compiler call a
// function at each access; here these functions check it:
//   - an address in the device's memory is inside one allocation; one in shared memory inside the block's;
//   - both are aligned to the access's size;
//   - everything else is the thread's own stack, or constant data of the program, which is not written;
//   - no two threads access a byte of which one writes it, unless a barrier of the block (in shared memory also one of
//     their warp) is between them, the accesses are atomic, or they belong to different launches.
// INFER_CUDA_STAND_IN_CHECKS=0 turns the checks off, for long runs of whole models.
#pragma once

#include <cstddef>

namespace cuda_stand_in {

enum class Access { kRead, kWrite, kAtomic };

// Fails the launch if the running thread may not access these bytes. `caller` is an address in the code, for messages.
void check_access(const void* address, size_t bytes, Access access, const void* caller);

// Fails the launch if the address is not a multiple of `bytes`.
void check_alignment(const void* address, size_t bytes, const void* caller);

// Whether all of the bytes are in the shared memory of blocks.
bool is_shared(const void* address, size_t bytes);

}  // namespace cuda_stand_in
