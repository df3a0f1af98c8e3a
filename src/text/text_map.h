// The tokenizers' hash tables: text -> number, and pair of numbers -> merge. Open addressing, no removal. The hash is
// seeded per process, so a crafted vocabulary or text cannot make all keys collide. Keys are views: the caller keeps
// their bytes alive. Concurrent reads are safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace infer {

class TextMap {
 public:
  static constexpr int32_t kNone = -1;

  void reserve(size_t n);
  // Returns false if the key exists; its value is kept.
  bool insert(std::string_view key, int32_t value);
  int32_t find(std::string_view key) const;  // kNone if absent
  size_t size() const { return size_; }

 private:
  struct Slot {
    const char* key = nullptr;
    uint32_t length = 0;
    uint32_t hash = 0;
    int32_t value = kNone;
  };
  size_t slot_of(std::string_view key, uint32_t hash) const;
  void grow(size_t n_slots);

  std::vector<Slot> slots_;  // size: a power of two
  size_t size_ = 0;
};

// (left symbol, right symbol) -> rank and symbol of the merge.
class MergeMap {
 public:
  struct Merge {
    uint32_t rank;
    uint32_t symbol;
  };

  void reserve(size_t n);
  // Of equal pairs the first is kept.
  void insert(uint32_t left, uint32_t right, Merge merge);
  const Merge* find(uint32_t left, uint32_t right) const;  // nullptr if absent

 private:
  struct Slot {
    uint64_t key = UINT64_MAX;
    Merge merge{};
  };
  void grow(size_t n_slots);

  std::vector<Slot> slots_;  // size: a power of two
  size_t size_ = 0;
};

}  // namespace infer
