// The functions of backends/cuda/kernel.h for the stand-in.
#pragma once

#include "cuda_stand_in_language.h"
#include "ggml-like/half.h"

namespace infer::cuda {

using cuda_stand_in::shared_memory;

inline void* dynamic_shared_memory() { return cuda_stand_in::dynamic_shared(); }
inline uint16_t float_to_half(float x) { return f32_to_f16(x); }
inline uint16_t float_to_bfloat(float x) { return f32_to_bf16(x); }
inline float half_to_float(uint16_t bits) { return f16_to_f32(bits); }

inline uint4 load_vector(const void* p) {
  uint4 v;
  cuda_stand_in::load_aligned(p, &v, sizeof v);
  return v;
}

inline void store_vector(void* p, uint4 v) { cuda_stand_in::store_aligned(p, &v, sizeof v); }

inline void copy_async(void* to, const void* from, bool present) {
  cuda_stand_in::queue_copy(to, present ? from : nullptr);
}
inline void commit_copies() { cuda_stand_in::commit_copies(); }
template <int kGroups>
void wait_copies() {
  cuda_stand_in::wait_copies(kGroups);
}
inline void load_matrices(uint32_t (&to)[4], const void* row,
                          cuda_stand_in::Place place = cuda_stand_in::Place::current()) {
  cuda_stand_in::load_matrices(to, row, false, place);
}
inline void load_transposed(uint32_t (&to)[4], const void* row,
                            cuda_stand_in::Place place = cuda_stand_in::Place::current()) {
  cuda_stand_in::load_matrices(to, row, true, place);
}

inline float fast_exp2(float x) { return std::exp2(x); }

inline uint32_t pack_halves(float low, float high) {
  return f32_to_f16(low) | static_cast<uint32_t>(f32_to_f16(high)) << 16;
}

inline void multiply_add(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                         cuda_stand_in::Place place = cuda_stand_in::Place::current()) {
  cuda_stand_in::multiply_f16(c, a, b, place);
}

}  // namespace infer::cuda
