#include "src/engine/draft/hidden_states.h"

#include "ggml-like/error.h"

namespace infer {

void HiddenStates::add(RequestId id, int64_t position, std::span<const float> state) {
  Rows& rows = rows_[id];
  const int64_t kept = position - rows.first;
  if (kept < 0 || kept > std::ssize(rows.states)) {
    rows.states.clear();
    rows.first = position;
  } else {
    rows.states.resize(static_cast<size_t>(kept));
  }
  rows.states.emplace_back(state.begin(), state.end());
  if (std::ssize(rows.states) > kMostRows) {
    rows.states.pop_front();
    ++rows.first;
  }
}

int64_t HiddenStates::first(RequestId id) const {
  const auto found = rows_.find(id);
  return found == rows_.end() ? 0 : found->second.first;
}

int64_t HiddenStates::end(RequestId id) const {
  const auto found = rows_.find(id);
  return found == rows_.end() ? 0 : found->second.first + std::ssize(found->second.states);
}

std::span<const float> HiddenStates::at(RequestId id, int64_t position) const {
  const Rows& rows = rows_.at(id);
  CHECK_INTERNAL(position >= rows.first && position < rows.first + std::ssize(rows.states));
  return rows.states[static_cast<size_t>(position - rows.first)];
}

}  // namespace infer
