// Bounds on what one grammar may cost. What exceeds them is refused with an error, so that a hostile grammar or schema
// cannot use up a server's time or memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace infer::grammar {

struct Limits {
  size_t source_bytes = size_t{4} << 20;  // of a GBNF text or a JSON schema
  size_t expressions = 500'000;           // as written, before compilation
  size_t nfa_edges = 600'000;             // before determinization
  size_t states = 150'000;                // of the compiled automaton
  size_t work = 4'000'000;                // steps of the compiler, each some tens of nanoseconds
  size_t nesting = 300;                   // groups inside groups
  size_t stacks = 4096;                   // ways to read the same text that are followed at once
};

}  // namespace infer::grammar
