// The position of a text in a grammar: all the ways in which the grammar can read the text so far. A value type; copies
// share their stacks. Each copy is used by one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "src/text/grammar/automaton.h"
#include "src/text/grammar/stack.h"

namespace infer::grammar {

// One way to read the text: a state of the automaton, and the stack of where its fragments return to.
struct Reading {
  static constexpr uint32_t kDone = kNoId;  // the stack is empty: nothing may follow
  uint32_t state = kDone;
  Stack stack;
  bool operator==(const Reading&) const = default;
};

class MatchState {
 public:
  MatchState() = default;  // the text cannot be read
  // The state before the first byte.
  static MatchState start(const Automaton& automaton, const Limits& limits);
  // A state with only `reading`.
  static MatchState at(Reading reading);

  // These throw Error(kInvalidArgument) if there are more ways than the limit.
  MatchState after_byte(const Automaton& automaton, const Limits& limits, uint8_t byte) const;
  // After a token that the grammar names, ignoring its bytes.
  MatchState after_token(const Automaton& automaton, const Limits& limits, TokenId token) const;
  // After the fragments entered from the tops of `stacks` have ended.
  static MatchState after_end(const Automaton& automaton, const Limits& limits, std::span<const Stack> stacks);

  bool is_dead() const { return readings_.empty(); }
  // The bytes around `byte` after which the state is the same, first and last.
  std::pair<uint8_t, uint8_t> alike(const Automaton& automaton, uint8_t byte) const;

  // The grammar may end here.
  bool can_end() const { return !readings_.empty() && readings_[0].state == Reading::kDone; }
  // Something may follow.
  bool can_continue() const { return readings_.size() > (can_end() ? 1u : 0u); }
  // A kDone reading, if any, comes first; the others have byte or token edges.
  std::span<const Reading> readings() const { return readings_; }

  void merge(const MatchState& other);
  uint64_t hash() const;
  bool operator==(const MatchState& other) const { return readings_ == other.readings_; }

 private:
  friend class Closure;
  std::vector<Reading> readings_;  // by state and hash of the stack, kDone first
};

}  // namespace infer::grammar
