// Counter-based random numbers for sampling: a pure function of (seed, position, token), so a token's noise does not
// depend on the batch, the order of the candidates or earlier samples.
// Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <array>
#include <cstdint>

#include "src/text/vocabulary.h"

namespace infer {

inline std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(p0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// The purpose of a random number; part of the counter.
enum class NoiseStream : uint32_t { kToken = 0, kXtc = 1 };

// 52 random bits for one index (a token id) at one position of a sequence.
inline uint64_t noise_bits(uint64_t seed, int64_t position, NoiseStream stream, uint32_t index) {
  const uint64_t p = static_cast<uint64_t>(position);
  const auto block =
      philox4x32({index, static_cast<uint32_t>(stream), static_cast<uint32_t>(p), static_cast<uint32_t>(p >> 32)},
                 {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return (uint64_t{block[0]} << 20) | (block[1] >> 12);
}

// The midpoint of one of 2^52 equal intervals between 0 and 1: never 0, never 1, exact in a double.
inline double noise_uniform(uint64_t bits52) { return (static_cast<double>(bits52) + 0.5) * 0x1p-52; }

}  // namespace infer
