// The latest hidden states of the target's sequences, which its prediction layer drafts from. Bounded per sequence, so
// a prediction layer that starts late sees only the end of a text. One thread.
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
  static constexpr int64_t kMostRows = 1024;  // per sequence

  // Stores the state of the token at `position`. Forgets later states, and after a gap also the earlier ones.
  void add(RequestId id, int64_t position, std::span<const float> state);
  // The range of known positions, [first, end). Both are 0 for an unknown sequence.
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
