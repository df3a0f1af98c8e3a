// The parts that architectures are made of, as free functions: each declares its weights, or adds nodes to a graph.
// They know nothing about architectures; what a part needs is an argument. An architecture that computes something else
// calls another function, or Graph itself.
//
// In shapes, n_tokens is the number of tokens of a step, n_outputs the number of those whose hidden state is wanted,
// and n_rows either of them.
#pragma once

#include "src/model/blocks/attention.h"     // IWYU pragma: export
#include "src/model/blocks/experts.h"       // IWYU pragma: export
#include "src/model/blocks/feed_forward.h"  // IWYU pragma: export
#include "src/model/blocks/in_and_out.h"    // IWYU pragma: export
#include "src/model/blocks/linear.h"        // IWYU pragma: export
