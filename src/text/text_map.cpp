#include "src/text/text_map.h"

#include <bit>
#include <cstring>
#include <random>

namespace infer {
namespace {

uint64_t hash_seed() {
  static const uint64_t seed = [] {
    std::random_device device;
    return static_cast<uint64_t>(device()) << 32 | device();
  }();
  return seed;
}

uint64_t mix(uint64_t a, uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint32_t hash_text(std::string_view text) {
  const uint64_t seed = hash_seed();
  uint64_t hash = seed ^ text.size();
  const char* p = text.data();
  size_t left = text.size();
  for (; left >= 8; left -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    hash = mix(hash ^ word, 0x9E3779B97F4A7C15ull ^ (seed << 1 | 1));
  }
  uint64_t word = 0;
  if (left > 0) std::memcpy(&word, p, left);
  hash = mix(hash ^ word, 0xD6E8FEB86659FD93ull);
  return static_cast<uint32_t>(hash ^ hash >> 32);
}

uint64_t hash_pair(uint64_t key) { return mix(key ^ hash_seed(), 0x9E3779B97F4A7C15ull); }

size_t slots_for(size_t n) { return std::bit_ceil(std::max<size_t>(16, n * 2)); }

}  // namespace

size_t TextMap::slot_of(std::string_view key, uint32_t hash) const {
  const size_t mask = slots_.size() - 1;
  size_t i = hash & mask;
  while (slots_[i].key && !(slots_[i].hash == hash && slots_[i].length == key.size() &&
                            (key.empty() || std::memcmp(slots_[i].key, key.data(), key.size()) == 0))) {
    i = (i + 1) & mask;
  }
  return i;
}

void TextMap::grow(size_t n_slots) {
  std::vector<Slot> old = std::move(slots_);
  slots_.assign(n_slots, Slot{});
  for (const Slot& slot : old) {
    if (slot.key) slots_[slot_of({slot.key, slot.length}, slot.hash)] = slot;
  }
}

void TextMap::reserve(size_t n) {
  if (slots_for(n) > slots_.size()) grow(slots_for(n));
}

bool TextMap::insert(std::string_view key, int32_t value) {
  if (size_ * 2 >= slots_.size()) grow(slots_for(size_ + 1));
  const uint32_t hash = hash_text(key);
  Slot& slot = slots_[slot_of(key, hash)];
  if (slot.key) return false;
  slot = {key.data() ? key.data() : "", static_cast<uint32_t>(key.size()), hash, value};
  ++size_;
  return true;
}

int32_t TextMap::find(std::string_view key) const {
  if (slots_.empty()) return kNone;
  return slots_[slot_of(key, hash_text(key))].value;
}

void MergeMap::grow(size_t n_slots) {
  std::vector<Slot> old = std::move(slots_);
  slots_.assign(n_slots, Slot{});
  const size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.key == UINT64_MAX) continue;
    size_t i = hash_pair(slot.key) & mask;
    while (slots_[i].key != UINT64_MAX) i = (i + 1) & mask;
    slots_[i] = slot;
  }
}

void MergeMap::reserve(size_t n) {
  if (slots_for(n) > slots_.size()) grow(slots_for(n));
}

void MergeMap::insert(uint32_t left, uint32_t right, Merge merge) {
  if (size_ * 2 >= slots_.size()) grow(slots_for(size_ + 1));
  const uint64_t key = static_cast<uint64_t>(left) << 32 | right;
  const size_t mask = slots_.size() - 1;
  size_t i = hash_pair(key) & mask;
  while (slots_[i].key != UINT64_MAX && slots_[i].key != key) i = (i + 1) & mask;
  if (slots_[i].key == key) return;
  slots_[i] = {key, merge};
  ++size_;
}

const MergeMap::Merge* MergeMap::find(uint32_t left, uint32_t right) const {
  if (slots_.empty()) return nullptr;
  const uint64_t key = static_cast<uint64_t>(left) << 32 | right;
  const size_t mask = slots_.size() - 1;
  for (size_t i = hash_pair(key) & mask; slots_[i].key != UINT64_MAX; i = (i + 1) & mask) {
    if (slots_[i].key == key) return &slots_[i].merge;
  }
  return nullptr;
}

}  // namespace infer
