#include "src/text/grammar/lookahead.h"

namespace infer::grammar {

void Lookahead::clear() {
  next_.clear();
  flags_.clear();
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
  return id;
}

Lookahead::State Lookahead::find_next(State state, uint8_t byte) {
  const State to = number(states_[state].after_byte(grammar_.automaton(), grammar_.limits(), byte));
  return next_[state][byte] = to;
}

}  // namespace infer::grammar
