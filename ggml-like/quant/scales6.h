// The 6-bit scales and minima shared by Q4_K and Q5_K: 8 + 8 numbers in 12 bytes, as described at BlockQ4_K.
#pragma once

#include <cstdint>

namespace infer {

inline void unpack_scales6(const uint8_t packed[12], int16_t scale[8], int16_t min[8]) {
  for (int s = 0; s < 4; ++s) {
    scale[s] = packed[s] & 63;
    min[s] = packed[4 + s] & 63;
    scale[4 + s] = static_cast<int16_t>((packed[8 + s] & 15) | packed[s] >> 6 << 4);
    min[4 + s] = static_cast<int16_t>(packed[8 + s] >> 4 | packed[4 + s] >> 6 << 4);
  }
}

inline void pack_scales6(const int16_t scale[8], const int16_t min[8], uint8_t packed[12]) {
  for (int s = 0; s < 4; ++s) {
    packed[s] = static_cast<uint8_t>(scale[s] | scale[4 + s] >> 4 << 6);
    packed[4 + s] = static_cast<uint8_t>(min[s] | min[4 + s] >> 4 << 6);
    packed[8 + s] = static_cast<uint8_t>((scale[4 + s] & 15) | (min[4 + s] & 15) << 4);
  }
}

}  // namespace infer
