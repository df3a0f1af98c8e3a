// A prefix tree over byte strings, built once and then read by any number of threads. Nodes are in breadth-first order,
// so a node's children are adjacent and their labels can be searched as a short byte string.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace infer {

class ByteTrie {
 public:
  static constexpr int32_t kNone = -1;
  static constexpr int32_t kRoot = 0;

  struct Match {
    size_t length = 0;  // 0: no match
    int32_t value = kNone;
  };

  using Entries = std::vector<std::pair<std::string_view, int32_t>>;

  ByteTrie() : ByteTrie(Entries()) {}
  // Values are >= 0. Empty keys are skipped; of equal keys the first wins.
  explicit ByteTrie(Entries entries);

  bool empty() const { return labels_.size() == 1; }
  int32_t child(int32_t node, uint8_t label) const;  // kNone if there is none
  int32_t value(int32_t node) const { return values_[static_cast<size_t>(node)]; }
  // The longest key that is a prefix of text[at...] and at most `limit` bytes long.
  Match longest_match(std::string_view text, size_t at, size_t limit = SIZE_MAX) const;

 private:
  std::vector<uint8_t> labels_;        // [n_nodes]
  std::vector<int32_t> values_;        // [n_nodes]
  std::vector<uint32_t> child_begin_;  // [n_nodes + 1]
  int32_t root_child_[256];
};

}  // namespace infer
