// Bounds on the cost of one grammar. A grammar beyond them is refused, so that a hostile grammar or schema cannot use
// up a server's time or memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace infer::grammar {

struct Limits {
  size_t source_bytes = size_t{4} << 20;  // of a GBNF text or a JSON schema
  size_t expressions = 500'000;           // as written, before compilation
  size_t nfa_edges = 600'000;             // before determinization
  size_t states = 150'000;                // of the compiled automaton
  size_t work = 4'000'000;                // compiler steps of some tens of nanoseconds each
  size_t nesting = 300;                   // depth of nested groups
  size_t stacks = 4096;                   // ways to read the same text that are followed in parallel
};

}  // namespace infer::grammar
