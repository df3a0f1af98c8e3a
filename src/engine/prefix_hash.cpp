#include "src/engine/prefix_hash.h"

#include <bit>
#include <random>
#include <vector>

namespace infer {
namespace {

struct SipState {
  uint64_t v0, v1, v2, v3;

  void round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
  void absorb(uint64_t word) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
  uint64_t squeeze() {
    for (int i = 0; i < 4; ++i) round();
    return v0 ^ v1 ^ v2 ^ v3;
  }
};

void append(std::vector<uint8_t>& bytes, uint64_t value, int n) {
  for (int i = 0; i < n; ++i) bytes.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

}  // namespace

PrefixKey siphash128(std::array<uint64_t, 2> secret, std::span<const uint8_t> bytes) {
  SipState s{secret[0] ^ 0x736f6d6570736575, secret[1] ^ 0x646f72616e646f6d ^ 0xee, secret[0] ^ 0x6c7967656e657261,
             secret[1] ^ 0x7465646279746573};
  uint64_t word = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    word |= uint64_t{bytes[i]} << (8 * (i % 8));
    if (i % 8 == 7) {
      s.absorb(word);
      word = 0;
    }
  }
  s.absorb(word | static_cast<uint64_t>(bytes.size()) << 56);
  PrefixKey key;
  s.v2 ^= 0xee;
  key.low = s.squeeze();
  s.v1 ^= 0xdd;
  key.high = s.squeeze();
  return key;
}

PrefixHasher::PrefixHasher() {
  std::random_device source;
  for (uint64_t& word : secret_) word = (uint64_t{source()} << 32) | source();
}

PrefixKey PrefixHasher::root(std::string_view salt) const {
  const std::vector<uint8_t> bytes(salt.begin(), salt.end());
  return siphash128(secret_, bytes);
}

PrefixKey PrefixHasher::next(const PrefixKey& previous, std::span<const TokenId> block) const {
  std::vector<uint8_t> bytes;
  bytes.reserve(16 + 4 * block.size());
  append(bytes, previous.low, 8);
  append(bytes, previous.high, 8);
  for (const TokenId token : block) append(bytes, static_cast<uint32_t>(token), 4);
  return siphash128(secret_, bytes);
}

}  // namespace infer
