#include "src/text/grammar/lookahead.h"

#include <algorithm>

namespace infer::grammar {

void Lookahead::clear() {
  next_.clear();
  flags_.clear();
  loops_.clear();
  states_.clear();
  by_hash_.clear();
  number(MatchState());  // kDead
  next_[kDead].fill(kDead);
}

Lookahead::State Lookahead::number(const MatchState& state) {
  const uint64_t hash = state.hash();
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto at = begin; at != end; ++at) {
    if (states_[at->second] == state) return at->second;
  }
  if (states_.size() >= kMaxStates) throw Full();
  const auto id = static_cast<State>(states_.size());
  by_hash_.emplace(hash, id);
  states_.push_back(state);
  flags_.push_back(static_cast<uint8_t>((state.can_continue() ? kLive : 0) | (state.can_end() ? kEscapes : 0)));
  next_.emplace_back().fill(kUnknown);
  loops_.emplace_back();
  return id;
}

Lookahead::State Lookahead::find_next(State state, uint8_t byte) {
  const State to = number(states_[state].after_byte(grammar_.automaton(), grammar_.limits(), byte));
  const auto [first, last] = states_[state].alike(grammar_.automaton(), byte);
  std::fill(next_[state].begin() + first, next_[state].begin() + last + 1, to);
  return to;
}

AsciiSet Lookahead::find_loops(State state) {
  AsciiSet loops;
  for (int byte = 0; byte < 128; ++byte) {
    if (next(state, static_cast<uint8_t>(byte)) == state) loops.add(static_cast<uint8_t>(byte));
  }
  flags_[state] |= kLoopsKnown;
  return loops_[state] = loops;
}

}  // namespace infer::grammar
