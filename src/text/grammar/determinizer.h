// Makes the automata of a grammar's fragments deterministic by subset construction. A fragment that would get too many
// states stays nondeterministic: its states may have overlapping edges. Used once, by one thread.
#pragma once

#include <unordered_map>
#include <vector>

#include "src/text/grammar/automaton.h"
#include "src/text/grammar/nfa.h"
#include "src/text/grammar/nfa_analysis.h"

namespace infer::grammar {

class Determinizer {
 public:
  Determinizer(const Nfa& nfa, const NfaAnalysis& analysis, const Limits& limits);
  // The automaton of everything reachable from the root.
  Automaton run();

 private:
  using Set = std::vector<uint32_t>;  // NFA states, ascending
  struct SetHash {
    size_t operator()(const Set& set) const;
  };
  struct Call {
    uint32_t argument;  // fragment or loop
    uint32_t to;
  };
  struct State {
    std::vector<ByteEdge> bytes;
    std::vector<Call> calls, loops;
    std::vector<TokenEdge> tokens;
    bool final = false;
  };

  void build_fragment(uint32_t fragment);
  bool build_states(uint32_t fragment, bool deterministic);
  uint32_t new_state(Set set);
  uint32_t state_of(const Set& targets);
  Set closure(const Set& targets);
  void expand(uint32_t state, const Set& set);
  void add_bytes(State& state, std::vector<NfaEdge>& edges);
  void add_overlapping_bytes(State& state, const std::vector<NfaEdge>& edges);
  std::vector<Call> merge_calls(std::vector<Call> calls);
  void count_work(size_t steps);
  Automaton finish() const;

  const Nfa& nfa_;
  const NfaAnalysis& analysis_;
  const Limits& limits_;
  std::vector<State> states_;
  std::vector<uint32_t> start_of_;  // [n_fragments]; kNoId: not built
  std::vector<uint32_t> wanted_;    // fragments that are called
  size_t work_ = 0;

  // State of the fragment being built.
  uint32_t fragment_ = 0;
  bool deterministic_ = true;
  std::unordered_map<Set, uint32_t, SetHash> ids_;
  std::unordered_map<uint32_t, uint32_t> id_of_one_;  // for sets with one target
  std::vector<std::pair<uint32_t, Set>> unexpanded_;
  std::vector<uint32_t> seen_;  // [n NFA states]: the last closure that reached each state
  uint32_t n_closures_ = 0;
};

}  // namespace infer::grammar
