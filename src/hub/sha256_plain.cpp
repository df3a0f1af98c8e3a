// SHA-256 (FIPS 180-4) for builds without OpenSSL.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "ggml-like/bytes_text.h"
#include "src/hub/sha256.h"

namespace infer {
namespace {

using Words = std::array<uint32_t, 8>;

// The first 32 bits of the fractional part of `root`.
uint32_t fraction(long double root) {
  return static_cast<uint32_t>((root - static_cast<long double>(static_cast<uint32_t>(root))) * 4294967296.0L);
}

constexpr int kRounds = 64;

// Newton's method.
long double cube_root(int n) {
  long double x = n;
  for (int i = 0; i < 100; ++i) x -= (x * x * x - n) / (3 * x * x);
  return x;
}

long double square_root(int n) {
  long double x = n;
  for (int i = 0; i < 100; ++i) x = (x + n / x) / 2;
  return x;
}

// The constants are defined by the first primes.
struct Constants {
  std::array<uint32_t, kRounds> round{};
  Words start{};

  Constants() {
    int found = 0;
    for (int n = 2; found < kRounds; ++n) {
      bool prime = true;
      for (int d = 2; d * d <= n; ++d) prime = prime && n % d != 0;
      if (!prime) continue;
      round[static_cast<size_t>(found)] = fraction(cube_root(n));
      if (found < 8) start[static_cast<size_t>(found)] = fraction(square_root(n));
      ++found;
    }
  }
};

const Constants& constants() {
  static const Constants all;
  return all;
}

void add_block(Words& hash, const unsigned char* block) {
  std::array<uint32_t, kRounds> w{};
  for (size_t i = 0; i < 16; ++i) {
    w[i] = static_cast<uint32_t>(block[4 * i]) << 24 | static_cast<uint32_t>(block[4 * i + 1]) << 16 |
           static_cast<uint32_t>(block[4 * i + 2]) << 8 | block[4 * i + 3];
  }
  for (size_t i = 16; i < w.size(); ++i) {
    const uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + w[i - 7] +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
  }
  Words v = hash;
  for (size_t i = 0; i < w.size(); ++i) {
    const uint32_t e = v[4], a = v[0];
    const uint32_t t1 = v[7] + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & v[5]) ^ (~e & v[6])) +
                        constants().round[i] + w[i];
    const uint32_t t2 =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
    std::copy_backward(v.begin(), v.end() - 1, v.end());
    v[4] += t1;
    v[0] = t1 + t2;
  }
  for (size_t i = 0; i < hash.size(); ++i) hash[i] += v[i];
}

}  // namespace

struct Sha256::State {
  Words hash = constants().start;
  std::array<unsigned char, 64> block{};
  uint64_t bytes = 0;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::add(const void* data, size_t bytes) {
  const auto* next = static_cast<const unsigned char*>(data);
  while (bytes > 0) {
    const size_t used = state_->bytes % 64, n = std::min(bytes, 64 - used);
    std::memcpy(state_->block.data() + used, next, n);
    state_->bytes += n;
    next += n;
    bytes -= n;
    if (used + n == 64) add_block(state_->hash, state_->block.data());
  }
}

std::string Sha256::finish() {
  const uint64_t bits = state_->bytes * 8;
  const unsigned char one = 0x80, zero = 0;
  add(&one, 1);
  while (state_->bytes % 64 != 56) add(&zero, 1);
  std::array<unsigned char, 32> bytes{};
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<unsigned char>(bits >> (56 - 8 * i));
  add(bytes.data(), 8);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<unsigned char>(state_->hash[i / 4] >> (24 - 8 * (i % 4)));
  }
  return hex_text(bytes.data(), bytes.size());
}

}  // namespace infer
