// The last hidden states of the target's sequences, from which its prediction layer drafts. Bounded per sequence: a
// prediction layer that begins late sees the later part of a text only. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>
#include <vector>

#include "src/engine/request.h"

namespace infer {

class HiddenStates {
 public:
  static constexpr int64_t kMostRows = 1024;  // of a sequence

  // The state of the token at `position`. Those behind it are forgotten, and after a gap those before it.
  void add(RequestId id, int64_t position, std::span<const float> state);
  // The positions that are known: [first, end). Both are 0 for an unknown sequence.
  int64_t first(RequestId id) const;
  int64_t end(RequestId id) const;
  // REQUIRES: first(id) <= position < end(id). Valid until the next add().
  std::span<const float> at(RequestId id, int64_t position) const;

  void forget(RequestId id) { rows_.erase(id); }
  void clear() { rows_.clear(); }

 private:
  struct Rows {
    int64_t first = 0;
    std::deque<std::vector<float>> states;
  };
  std::unordered_map<RequestId, Rows> rows_;
};

}  // namespace infer
