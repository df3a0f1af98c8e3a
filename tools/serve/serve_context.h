// The context and KV cache sizes of a server whose flags do not set them: as many tokens as memory holds, up to the
// trained context. Uses the same calculation as a run (plan_memory); allocates nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "src/engine/engine.h"

namespace infer {

struct ServeContext {
  int64_t context = 0;       // for one prompt and its answer
  int64_t cache_tokens = 0;  // in the KV cache, shared by all sequences
  std::string limit;  // what limits the context: "-c", "--kv-tokens", "memory", "training", or "default" if the trained
                      // context is unknown
};

// Host memory that a server may fill: three quarters of what is free, because it runs for a long time and other
// programs start.
uint64_t usable_host_memory(uint64_t free);

// `options`: context and cache_tokens as set by the flags, 0 if not set. The cache holds one to four contexts. It
// displaces no layers from a GPU that could hold them together with one context of kDefaultContext (or the given one).
// If not even that fits, returns it anyway, and loading the model reports what is missing. Throws what plan_memory
// throws.
ServeContext choose_serve_context(const std::shared_ptr<Model>& model, EngineOptions options);

}  // namespace infer
