// Transition tables for the states of a grammar a few bytes ahead, starting from a reading of which only the top of the
// stack is known. A reading "escapes" when it leaves the known part: what follows depends on the rest of the stack.
// Filled on demand. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "src/text/grammar/grammar.h"
#include "src/text/grammar/token_trie.h"

namespace infer::grammar {

class Lookahead {
 public:
  using State = uint32_t;
  static constexpr State kDead = 0;
  // Thrown when there are too many states to number. Existing numbers stay valid.
  struct Full {};

  explicit Lookahead(const Grammar& grammar) : grammar_(grammar) { clear(); }

  // Throws Full, as next() does.
  State number(const MatchState& state);
  State next(State state, uint8_t byte) {
    const State to = next_[state][byte];
    return to != kUnknown ? to : find_next(state, byte);
  }
  bool is_dead(State state) const { return state == kDead; }
  // The reading can continue within the known part of the stack.
  bool is_live(State state) const { return flags_[state] & kLive; }
  bool escapes(State state) const { return flags_[state] & kEscapes; }

  // The ASCII bytes that leave the state as it is.
  AsciiSet loops(State state) { return flags_[state] & kLoopsKnown ? loops_[state] : find_loops(state); }

  bool is_full() const { return states_.size() >= kMaxStates / 2; }
  void clear();

 private:
  static constexpr State kUnknown = UINT32_MAX;
  static constexpr size_t kMaxStates = 16384;  // about 1 KiB each
  static constexpr uint8_t kLive = 1, kEscapes = 2, kLoopsKnown = 4;

  State find_next(State state, uint8_t byte);
  AsciiSet find_loops(State state);

  const Grammar& grammar_;
  std::vector<std::array<State, 256>> next_;  // [n_states]
  std::vector<uint8_t> flags_;                // [n_states]
  std::vector<AsciiSet> loops_;               // [n_states]
  std::vector<MatchState> states_;            // [n_states]
  std::unordered_multimap<uint64_t, State> by_hash_;
};

// The same without tables: slower, but needs no memory. For grammars that are too large for the tables.
class DirectLookahead {
 public:
  using State = MatchState;
  explicit DirectLookahead(const Grammar& grammar) : grammar_(grammar) {}
  State number(const MatchState& state) const { return state; }
  State next(const State& state, uint8_t byte) const {
    return state.after_byte(grammar_.automaton(), grammar_.limits(), byte);
  }
  bool is_dead(const State& state) const { return state.is_dead(); }
  bool is_live(const State& state) const { return state.can_continue(); }
  bool escapes(const State& state) const { return state.can_end(); }
  AsciiSet loops(const State& /*state*/) const { return {}; }  // unknown

 private:
  const Grammar& grammar_;
};

}  // namespace infer::grammar
