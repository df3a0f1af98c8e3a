// How many tokens a server's contexts and KV cache hold where its flags do not say: as many as the memory holds, up to
// what the model was trained with. Asks the sums that the run will make (plan_memory); nothing is allocated.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "src/engine/engine.h"

namespace infer {

struct ServeContext {
  int64_t context = 0;       // tokens of one prompt and its answer
  int64_t cache_tokens = 0;  // of the KV cache, which all sequences share
  std::string limit;         // of the context: "-c", "--kv-tokens", "memory", "training", or "default" where the model
                             // does not say with what context it was trained
};

// Memory that a server may fill on its host: three quarters of what is free. A server stays, and other programs come.
uint64_t usable_host_memory(uint64_t free);

// `options`: with context and cache_tokens as the flags say them, 0 where they do not. The cache holds up to four
// contexts, at least one, and takes no layers from a GPU that would hold them beside one context of kDefaultContext (or
// the one given). Where not even that fits, it is the answer, and loading the model says what is missing. Throws what
// plan_memory throws.
ServeContext choose_serve_context(const std::shared_ptr<Model>& model, EngineOptions options);

}  // namespace infer
