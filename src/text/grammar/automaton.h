// A compiled grammar: a pushdown automaton over bytes. Immutable; read by any number of threads.
//
// A state's edges read one byte and stay in the same fragment (a rule, or the body of a counted repetition). A call
// enters a fragment and returns to a state when the fragment ends. Every fragment reads at least one byte: if a rule
// may also be empty, its callers handle that case. Every state can reach the end of its fragment. So every text that
// the automaton can read has a continuation that the grammar accepts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/text/grammar/limits.h"
#include "src/text/grammar/rules.h"

namespace infer::grammar {

struct ByteEdge {
  uint8_t first, last;
  uint32_t to;
};

struct CallEdge {
  uint32_t start;  // the called fragment's first state
  uint32_t to;     // where it returns
};

// Reads the body `min` to `max` times. Taken only if something is read: zero repetitions are handled by the states
// before it.
struct LoopEdge {
  uint32_t start;
  uint32_t min, max;
  uint32_t to;
};

struct TokenEdge {
  TokenLiteral literal;
  uint32_t to;
};

class Automaton {
 public:
  // Throws Error(kInvalidArgument), naming the rule, for left recursion and for exceeded limits.
  static Automaton compile(const Rules& rules, const Limits& limits);

  size_t n_states() const { return states_.size(); }
  uint32_t start() const { return start_; }  // kNoId: the grammar accepts no text, except perhaps the empty one
  bool accepts_empty() const { return accepts_empty_; }

  // Ascending. Ranges overlap only in fragments that were too large to be made deterministic.
  std::span<const ByteEdge> bytes(uint32_t state) const { return part(bytes_, state, &State::bytes); }
  std::span<const CallEdge> calls(uint32_t state) const { return part(calls_, state, &State::calls); }
  std::span<const TokenEdge> tokens(uint32_t state) const { return part(tokens_, state, &State::tokens); }
  // The first of the state's loops, as an index for loop(), and how many there are.
  uint32_t first_loop(uint32_t state) const { return states_[state].loops; }
  uint32_t n_loops(uint32_t state) const { return states_[state + 1].loops - states_[state].loops; }
  const LoopEdge& loop(uint32_t index) const { return loops_[index]; }
  bool is_final(uint32_t state) const { return states_[state].final; }
  // The state has no edges; only the end of the fragment follows.
  bool is_only_final(uint32_t state) const { return states_[state].only_final; }

 private:
  friend class Determinizer;
  struct State {
    uint32_t bytes = 0, calls = 0, loops = 0, tokens = 0;  // where each begins; it ends where the next state's begins
    bool final = false, only_final = false;
  };
  template <typename T>
  std::span<const T> part(const std::vector<T>& all, uint32_t state, uint32_t State::*begin) const {
    return {all.data() + states_[state].*begin, all.data() + states_[state + 1].*begin};
  }

  std::vector<State> states_;  // [n_states + 1]
  std::vector<ByteEdge> bytes_;
  std::vector<CallEdge> calls_;
  std::vector<LoopEdge> loops_;
  std::vector<TokenEdge> tokens_;
  uint32_t start_ = kNoId;
  bool accepts_empty_ = false;
};

}  // namespace infer::grammar
