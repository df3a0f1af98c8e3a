#include "tools/serve/serve_context.h"

#include <algorithm>

#include "ggml-like/error.h"
#include "src/engine/draft/load_draft.h"

namespace infer {
namespace {

// Number of full contexts in the KV cache, if there are that many sequences and enough memory.
constexpr int64_t kContexts = 4;

// `draft`: empty without a draft.
bool fits(const std::vector<DeviceUse>& uses, const std::vector<DeviceUse>& draft) {
  uint64_t on_host = 0;
  std::vector<uint64_t> of_draft;
  for (const DeviceUse& use : uses) on_host += use.is_host ? use.needed() : 0;
  for (const DeviceUse& use : draft) {
    on_host += use.is_host ? use.needed() : 0;
    of_draft.push_back(use.needed());
  }
  return on_host <= usable_host_memory(uses.front().memory.free) && shortage_of(uses, of_draft).empty();
}

// Parts of the model on devices other than the CPU.
int moved_parts(const std::vector<DeviceUse>& uses) {
  int parts = 0;
  for (size_t d = 1; d < uses.size(); ++d) parts += uses[d].n_layers + uses[d].has_input + uses[d].has_output;
  return parts;
}

class ContextChooser {
 public:
  ContextChooser(const std::shared_ptr<Model>& model, const EngineOptions& options)
      : model_(model), options_(options), n_contexts_(std::min<int64_t>(options.max_sequences, kContexts)) {
    options_.opened = open_devices(options);
  }

  // Chooses a context of at most `most` tokens (a bound set by `limit`), as large as the cache allows.
  ServeContext choose(int64_t most, const char* limit) {
    const int64_t least = std::min(most, kDefaultContext);
    fix_layers(least);
    const int64_t blocks = largest_cache(most, blocks_for(least), blocks_for(most) * n_contexts_);
    const int64_t context = std::min(most, blocks * kBlockTokens);
    return {context, blocks * kBlockTokens, context < most ? "memory" : limit};
  }

  // Chooses the cache for a given context.
  ServeContext choose_cache(int64_t context) {
    fix_layers(context);
    const int64_t blocks = blocks_for(context);
    return {context, largest_cache(context, blocks, blocks * n_contexts_) * kBlockTokens, "-c"};
  }

 private:
  // Fixes the layers that -ngl auto offloads with a cache of one context, so that a larger cache displaces none.
  void fix_layers(int64_t context) {
    if (options_.placement.n_gpu_layers != kAutoLayers) return;
    options_.placement.n_gpu_layers = moved_parts(plan_memory(model_, with_cache(context, blocks_for(context))));
  }

  EngineOptions with_cache(int64_t context, int64_t blocks) const {
    EngineOptions options = options_;
    options.context = context;
    options.cache_tokens = blocks * kBlockTokens;
    return options;
  }

  // The largest number of blocks from `least` to `most` that fits; `least` if none does.
  int64_t largest_cache(int64_t most_context, int64_t least, int64_t most) const {
    while (least < most) {
      const int64_t middle = least + (most - least + 1) / 2;
      const bool fit = [&] {
        try {
          const EngineOptions options = with_cache(std::min(most_context, middle * kBlockTokens), middle);
          return fits(plan_memory(model_, options), plan_draft_memory(options));
        } catch (const Error& error) {
          if (error.code() != ErrorCode::kOutOfMemory) throw;
          return false;
        }
      }();
      if (fit) {
        least = middle;
      } else {
        most = middle - 1;
      }
    }
    return least;
  }

  const std::shared_ptr<Model>& model_;
  EngineOptions options_;
  const int64_t n_contexts_;
};

}  // namespace

uint64_t usable_host_memory(uint64_t free) { return free / 4 * 3; }

ServeContext choose_serve_context(const std::shared_ptr<Model>& model, EngineOptions options) {
  constexpr int64_t kMost = int64_t{1} << 40;               // the engine's limit
  options.context = std::max<int64_t>(options.context, 0);  // kTrainedContext is the default here
  const bool known = model->context_length() > 0;
  const int64_t trained = known ? model->context_length() : kDefaultContext;
  const char* limit = known ? "training" : "default";
  if (options.context > kMost) return {options.context, options.cache_tokens, "-c"};  // the engine will refuse it
  if (options.cache_tokens > 0) {
    if (options.context > 0) return {options.context, options.cache_tokens, "-c"};
    const bool all = trained <= options.cache_tokens;
    return {all ? trained : options.cache_tokens, options.cache_tokens, all ? limit : "--kv-tokens"};
  }
  ContextChooser chooser(model, options);
  return options.context > 0 ? chooser.choose_cache(options.context) : chooser.choose(trained, limit);
}

}  // namespace infer
