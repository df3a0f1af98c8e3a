// Names for the contents of cache blocks: a 128-bit hash of a block's tokens and of all blocks before it, the cache
// group and the salt of the request. The hash is SipHash-2-4 with a secret key drawn at start, so that nobody can
// construct two texts of one name and read another's cache. Immutable, safe from any thread.
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
  PrefixKey root(int group, std::string_view salt) const;
  // The key of a full block that follows the one of key `previous`.
  PrefixKey next(const PrefixKey& previous, std::span<const TokenId> block) const;

 private:
  std::array<uint64_t, 2> secret_;
};

}  // namespace infer
