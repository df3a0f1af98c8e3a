// The building blocks of architectures, as free functions: each declares weights or adds nodes to a graph. They know
// nothing about architectures; everything they need is an argument. An architecture that computes something else calls
// a different function, or Graph directly.
//
// In shapes, n_tokens is the number of tokens in a step, n_outputs the number of those whose hidden state is needed,
// and n_rows is either.
#pragma once

#include "src/model/blocks/altup.h"                 // IWYU pragma: export
#include "src/model/blocks/attention.h"             // IWYU pragma: export
#include "src/model/blocks/attention_residual.h"    // IWYU pragma: export
#include "src/model/blocks/compressed_attention.h"  // IWYU pragma: export
#include "src/model/blocks/delta_net.h"             // IWYU pragma: export
#include "src/model/blocks/experts.h"               // IWYU pragma: export
#include "src/model/blocks/feed_forward.h"          // IWYU pragma: export
#include "src/model/blocks/gated_attention.h"       // IWYU pragma: export
#include "src/model/blocks/gated_streams.h"         // IWYU pragma: export
#include "src/model/blocks/gemma_layers.h"          // IWYU pragma: export
#include "src/model/blocks/hyper_connection.h"      // IWYU pragma: export
#include "src/model/blocks/in_and_out.h"            // IWYU pragma: export
#include "src/model/blocks/indexer.h"               // IWYU pragma: export
#include "src/model/blocks/kimi_delta.h"            // IWYU pragma: export
#include "src/model/blocks/latent_attention.h"      // IWYU pragma: export
#include "src/model/blocks/linear.h"                // IWYU pragma: export
#include "src/model/blocks/mamba.h"                 // IWYU pragma: export
#include "src/model/blocks/mixture.h"               // IWYU pragma: export
#include "src/model/blocks/narrow_experts.h"        // IWYU pragma: export
#include "src/model/blocks/ngram_embedding.h"       // IWYU pragma: export
#include "src/model/blocks/normalized_attention.h"  // IWYU pragma: export
#include "src/model/blocks/parallel_experts.h"      // IWYU pragma: export
#include "src/model/blocks/per_layer_embedding.h"   // IWYU pragma: export
#include "src/model/blocks/prediction.h"            // IWYU pragma: export
