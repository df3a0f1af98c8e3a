// Keys for the contents of cache blocks: a 128-bit hash of a block's tokens, all preceding blocks and the request's
// salt. The cache groups use the same keys in separate indexes. The hash is SipHash-2-4 with a random secret chosen at
// startup, so nobody can construct two texts with the same key to read another request's cache. Immutable; thread-safe.
// SipHash: Aumasson, Bernstein, "SipHash: a fast short-input PRF", 2012; 128-bit output as in the authors' code.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "src/text/vocabulary.h"

namespace infer {

struct PrefixKey {
  uint64_t low = 0, high = 0;
  bool operator==(const PrefixKey&) const = default;
};

struct PrefixKeyHash {
  size_t operator()(const PrefixKey& key) const { return static_cast<size_t>(key.low); }
};

PrefixKey siphash128(std::array<uint64_t, 2> secret, std::span<const uint8_t> bytes);

class PrefixHasher {
 public:
  PrefixHasher();  // a secret from the operating system
  explicit PrefixHasher(std::array<uint64_t, 2> secret) : secret_(secret) {}

  // The key before the first block. Requests with different salts never share blocks.
  PrefixKey root(std::string_view salt) const;
  // The key of the full block after the one with key `previous`.
  PrefixKey next(const PrefixKey& previous, std::span<const TokenId> block) const;

 private:
  std::array<uint64_t, 2> secret_;
};

}  // namespace infer
