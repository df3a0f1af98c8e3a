#include "src/text/byte_trie.h"

#include <algorithm>
#include <cstring>

namespace infer {

ByteTrie::ByteTrie(Entries entries) {
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  struct Range {
    uint32_t begin, end;  // the entries in a node's subtree
    uint32_t depth;
  };
  std::vector<Range> ranges{{0, static_cast<uint32_t>(entries.size()), 0}};
  labels_.push_back(0);
  for (size_t node = 0; node < ranges.size(); ++node) {
    auto [at, end, depth] = ranges[node];
    child_begin_.push_back(static_cast<uint32_t>(ranges.size()));
    // Entries that end here sort before longer ones.
    values_.push_back(at < end && depth > 0 && entries[at].first.size() == depth ? entries[at].second : kNone);
    while (at < end && entries[at].first.size() == depth) ++at;
    while (at < end) {
      const char label = entries[at].first[depth];
      uint32_t next = at + 1;
      while (next < end && entries[next].first[depth] == label) ++next;
      ranges.push_back({at, next, depth + 1});
      labels_.push_back(static_cast<uint8_t>(label));
      at = next;
    }
  }
  child_begin_.push_back(static_cast<uint32_t>(ranges.size()));
  std::fill(std::begin(root_child_), std::end(root_child_), kNone);
  for (uint32_t i = child_begin_[0]; i < child_begin_[1]; ++i) root_child_[labels_[i]] = static_cast<int32_t>(i);
}

int32_t ByteTrie::child(int32_t node, uint8_t label) const {
  if (node == kRoot) return root_child_[label];
  const uint32_t begin = child_begin_[static_cast<size_t>(node)], end = child_begin_[static_cast<size_t>(node) + 1];
  if (begin == end) return kNone;
  const void* found = std::memchr(labels_.data() + begin, label, end - begin);
  return found ? static_cast<int32_t>(static_cast<const uint8_t*>(found) - labels_.data()) : kNone;
}

ByteTrie::Match ByteTrie::longest_match(std::string_view text, size_t at, size_t limit) const {
  Match best;
  const size_t n = std::min(limit, text.size() - at);
  int32_t node = kRoot;
  for (size_t i = 0; i < n; ++i) {
    node = child(node, static_cast<uint8_t>(text[at + i]));
    if (node == kNone) break;
    if (value(node) != kNone) best = {i + 1, value(node)};
  }
  return best;
}

}  // namespace infer
