// What the compiler must know about the automata before it makes them deterministic: which fragments can be empty,
// which are left-recursive, and which states lead to an end. Linear in the size of the automata.
#pragma once

#include <vector>

#include "src/text/grammar/nfa.h"

namespace infer::grammar {

struct NfaAnalysis {
  std::vector<bool> nullable;  // [n_fragments]: accepts the empty text
  std::vector<bool> live;      // [n_states]: can reach the end of its fragment

  // Sets the minimum count of loops whose body can be empty to 0. Throws Error(kInvalidArgument) for left recursion.
  explicit NfaAnalysis(Nfa& nfa);

  // Whether the edge can be taken without reading anything. Not defined for kByte and kToken.
  bool is_empty(const Nfa& nfa, const NfaEdge& edge) const;

 private:
  void find_nullable(const Nfa& nfa);
  void refuse_left_recursion(const Nfa& nfa) const;
  void find_live(const Nfa& nfa);
};

}  // namespace infer::grammar
