// The engine's options, the devices they name, and the model runner's options derived from them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/engine/draft/speculation_options.h"
#include "src/engine/memory_use.h"
#include "src/engine/placed_model.h"

namespace infer {

struct EngineOptions {
  std::vector<std::string> devices = {"cpu"};  // that hold layers, see open_devices(); empty: default_accelerator()
  std::shared_ptr<DeviceSet> opened;           // those devices if already open; null: open them
  PlacementOptions placement;
  bool strict_offload = false;  // a missing kernel or insufficient device memory is an error
  // Gets a line for each deviation from what was asked for: fewer layers on a device, or operations that run on the CPU
  // because a device has no kernel. Called at construction, and later when a step of a new size finds another one.
  std::function<void(const std::string& line)> note;
  LoadingProgress loading;
  int n_threads = 0, n_threads_batch = 0;  // as in DeviceOptions, like the next ones
  std::vector<int> processors;
  bool deterministic = false, blas = false;
  int64_t blas_min_rows = 0;
  int64_t context = 0;       // tokens per sequence, or kTrainedContext; 0: see choose_context()
  int max_sequences = 1;     // computed side by side
  int max_waiting = 1024;    // requests in the queue
  int64_t cache_tokens = 0;  // of all sequences together; 0: a whole context for each
  int step_tokens = 512;     // tokens per step; see step_tokens()
  SpeculationOptions speculation;
  int draft_rows = 0;              // drafts per sequence that a step has room to verify, when all sequences decode
  std::vector<uint64_t> reserved;  // bytes per device that kAutoLayers leaves to others; missing ones are 0
  std::optional<DataType> key_type, value_type;  // of the KV cache; unset: that of the first device with layers
  double max_itl_ms = 0;    // bound on steps that mix prompt and decode tokens, see ChunkPacer; 0: none
  bool all_logits = false;  // a step has room for the logits of every token, as logits_from needs
  // Otherwise the logits of a step take up to this many bytes, but there is always room for one row and the draft rows
  // of each sequence. Prompts of requests with logits_from are computed that many rows at a time.
  uint64_t logits_bytes = 0;
  // If a sequence's logits are not finite or no token can be sampled, it and its choices end with FinishReason::kError;
  // otherwise step() throws.
  bool isolate_errors = false;
  bool embeddings = false;  // requests may ask for pooled hidden states
  std::vector<Observer> observers;
  std::function<void(const ProductInput& input)> product_observer;  // see PlanOptions
  bool profile = false;                                             // time every operation; slows steps down slightly
};
inline constexpr int64_t kDefaultContext = 4096;
inline constexpr int64_t kTrainedContext = -1;  // the model's own; kDefaultContext if it does not say

// The devices that the options name, or those already open.
std::shared_ptr<DeviceSet> open_devices(const EngineOptions& options);
// The context size in tokens: what the options ask for, or else the model's own, capped at kDefaultContext for models
// that generate. Throws Error(kInvalidArgument) if the model has too few positions.
int64_t choose_context(const Model& model, int64_t asked);
// The token budget of a step. For an encoder, a step has room for one whole text plus one token for each other
// sequence.
int64_t step_tokens(const Model& model, const EngineOptions& options);
// The options of an engine's runner; kAutoLayers leaves room for the draft too. Throws Error(kUnsupported) for cache
// groups that no operation supports, and Error(kOutOfMemory) for contexts beyond any memory. `note` may be null.
RunnerOptions runner_options(const std::shared_ptr<Model>& model, const EngineOptions& options,
                             const std::function<void(const std::string& line)>& note);
// What an engine with these options would allocate for its model on each device; allocates nothing. Throws as Engine
// does. See plan_draft_memory() for its draft.
std::vector<DeviceUse> plan_memory(std::shared_ptr<Model> model, const EngineOptions& options);

}  // namespace infer
