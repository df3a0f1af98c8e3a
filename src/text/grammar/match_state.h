// Where a text stands in a grammar: all the ways in which the grammar can read the text so far. A value; a copy shares
// its stacks. Used by one thread at a time, copies by different ones.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "src/text/grammar/automaton.h"
#include "src/text/grammar/stack.h"

namespace infer::grammar {

// One way: a state of the automaton, and where its fragments return to.
struct Reading {
  static constexpr uint32_t kDone = kNoId;  // the bottom of the stack was left: nothing may follow
  uint32_t state = kDone;
  Stack stack;
  bool operator==(const Reading&) const = default;
};

class MatchState {
 public:
  MatchState() = default;  // no way to read the text
  // Before the first byte.
  static MatchState start(const Automaton& automaton, const Limits& limits);
  // In `reading` alone.
  static MatchState at(Reading reading);

  // Each throws Error(kInvalidArgument) if there are more ways than the limit.
  MatchState after_byte(const Automaton& automaton, const Limits& limits, uint8_t byte) const;
  // After a token that the grammar names. Ignores its bytes.
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
  // The one that is done, if any, is the first; the others have byte or token edges.
  std::span<const Reading> readings() const { return readings_; }

  void merge(const MatchState& other);
  uint64_t hash() const;
  bool operator==(const MatchState& other) const { return readings_ == other.readings_; }

 private:
  friend class Closure;
  std::vector<Reading> readings_;  // by state and hash of the stack, kDone first
};

}  // namespace infer::grammar
