// SipHash against the authors' test vectors, and what the keys of blocks depend on.
#include "src/engine/prefix_hash.h"

#include <doctest/doctest.h>

#include <vector>

using namespace infer;

TEST_CASE("siphash128 gives the authors' test vectors") {
  const std::array<uint64_t, 2> secret = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
  // Input 00 01 02 ...; the output's 16 bytes, little-endian words.
  CHECK(siphash128(secret, {}) == PrefixKey{0xe6a825ba047f81a3, 0x930255c71472f66d});
  CHECK(siphash128(secret, std::vector<uint8_t>{0}) == PrefixKey{0x44af996bd8c187da, 0x45fc229b11597634});
  std::vector<uint8_t> bytes(15);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i);
  CHECK(siphash128(secret, bytes) == PrefixKey{0x11a8b03399e99354, 0xd9c3cf970fec087e});
}

TEST_CASE("a key depends on the salt, every token and all blocks before") {
  const PrefixHasher hasher({1, 2});
  const std::vector<TokenId> block = {1, 2, 3}, other = {1, 2, 4};
  const PrefixKey root = hasher.root("");
  CHECK(root == hasher.root(""));
  CHECK(root != hasher.root("salt"));
  CHECK(hasher.next(root, block) == hasher.next(root, block));
  CHECK(hasher.next(root, block) != hasher.next(root, other));
  CHECK(hasher.next(root, block) != hasher.next(hasher.next(root, block), block));
  CHECK(hasher.next({1, 2}, block) != hasher.next({1, 3}, block));  // both halves of the previous key matter
  CHECK(hasher.next({1, 2}, block) != hasher.next({0, 2}, block));
  CHECK(hasher.next(root, block) != PrefixHasher({1, 3}).next(PrefixHasher({1, 3}).root(""), block));
  CHECK(PrefixHasher().root("") != PrefixHasher().root(""));
}
