#include "src/engine/engine_options.h"

#include <algorithm>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "src/engine/block_pool.h"
#include "src/engine/draft/load_draft.h"
#include "src/engine/kv_cache_size.h"
#include "src/engine/load_runner.h"

namespace infer {
namespace {

constexpr int64_t kForcedDrafts = 16;  // of a step, of what grammars force
constexpr int64_t kMostDrafts = 64;    // of a step: more never pay, and their logits take memory

// The line for `note` when auto found room for only some of the layers.
std::string partial_text(const Fit& fit, int n_layer, const DeviceSet& set) {
  std::string names;
  for (size_t d = 1; d < set.devices.size(); ++d) names += (d > 1 ? ", " : "") + set.devices[d]->name();
  return concat("[offload] -ngl auto on ", names, ": ", fit.parts, " of ", placeable_parts(n_layer), " layers fit; ",
                fit.shortage);
}

// Both the scheduler and the memory plan get a step's row counts here.
StepCapacity step_capacity(const Model& model, const EngineOptions& options) {
  const int64_t context = choose_context(model, options.context);
  const int64_t tokens = std::min(step_tokens(model, options), context * options.max_sequences);
  const int64_t sequences = std::max(options.max_sequences, 1);
  int64_t drafts = sequences * options.draft_rows;
  if (options.speculation.any()) {
    drafts = std::max(drafts, std::min(sequences * options.speculation.drafts_of_step(), kMostDrafts));
  }
  if (options.speculation.jump_forward) drafts = std::max(drafts, kForcedDrafts);
  const int64_t decode_rows = sequences + drafts;
  const uint64_t rows = options.logits_bytes / (sizeof(float) * static_cast<uint64_t>(model.n_vocab()));
  const int64_t logits = std::max(decode_rows, static_cast<int64_t>(std::min<uint64_t>(rows, INT32_MAX)));
  StepCapacity capacity;
  capacity.tokens = static_cast<int>(tokens);
  capacity.logits = static_cast<int>(options.all_logits ? tokens : std::min(logits, tokens));
  const std::shared_ptr<Model>& draft = options.speculation.draft;
  const bool all_hidden = options.embeddings || (draft && draft->config().part == ModelPart::kPrediction);
  capacity.outputs = all_hidden ? capacity.tokens : capacity.logits;
  capacity.sequences = options.max_sequences;
  capacity.groups = static_cast<int>(model.cache_groups().size());
  capacity.blocks_per_sequence = static_cast<int>(std::min<int64_t>(blocks_for(context), INT32_MAX));
  return capacity;
}

}  // namespace

int64_t choose_context(const Model& model, int64_t asked) {
  const int64_t most = model.max_context();
  if (most > 0 && asked > most) {
    throw Error(ErrorCode::kInvalidArgument,
                concat("The model has positions for ", grouped(static_cast<uint64_t>(most)), " tokens; a context of ",
                       grouped(static_cast<uint64_t>(asked)), " needs more. Choose a smaller context with -c."));
  }
  if (asked > 0) return asked;
  const int64_t trained = model.context_length();
  if (!model.config().causal || (asked == kTrainedContext && trained > 0)) return trained;
  return trained > 0 ? std::min<int64_t>(trained, kDefaultContext) : kDefaultContext;
}

int64_t step_tokens(const Model& model, const EngineOptions& options) {
  if (model.config().causal) return options.step_tokens;
  return std::max<int64_t>(options.step_tokens, choose_context(model, options.context) + options.max_sequences - 1);
}

std::shared_ptr<DeviceSet> open_devices(const EngineOptions& options) {
  if (options.opened) return options.opened;
  const DeviceOptions device = {options.n_threads, options.n_threads_batch, options.processors, options.deterministic,
                                options.blas,      options.blas_min_rows};
  if (!options.devices.empty()) return open_devices(options.devices, device);
  const auto tell = [&](const std::string& line) {
    if (options.strict_offload) throw Error(ErrorCode::kUnsupported, line);
    if (options.note) options.note(line);
  };
  const std::string gpu = default_accelerator();
  const int asked = options.placement.n_gpu_layers;
  const std::vector<std::string> problems = gpu.empty() && asked != 0 ? device_problems() : std::vector<std::string>{};
  if (!problems.empty()) {
    tell(concat("[offload] all on the CPU, since no GPU can be used: ", problems.front()));
  } else if (gpu.empty() && asked != kAutoLayers && asked != 0) {
    tell(concat("[offload] -ngl ", asked == kAllLayers ? "all" : concat(asked),
                ": all on the CPU, since no GPU was found. infer devices lists the devices"));
  }
  return open_default_devices(gpu, device, tell);
}

RunnerOptions runner_options(const std::shared_ptr<Model>& model, const EngineOptions& options,
                             const std::function<void(const std::string& line)>& note) {
  const int64_t context = choose_context(*model, options.context);
  // More than any machine has, yet small enough that no derived size overflows.
  if (context > (int64_t{1} << 40)) {
    throw Error(ErrorCode::kOutOfMemory, concat("A context of ", grouped(static_cast<uint64_t>(context)),
                                                " tokens exceeds any memory. Choose a smaller -c."));
  }
  RunnerOptions runner;
  runner.devices = open_devices(options);
  runner.placement = options.placement;
  runner.strict_offload = options.strict_offload;
  runner.key_type = options.key_type;
  runner.value_type = options.value_type;
  const bool drafts = options.draft_rows > 0 || options.speculation.any();
  CacheDemand demand{context, options.max_sequences, step_tokens(*model, options), options.cache_tokens, drafts};
  // The keys and values of an encoder are needed during one step only.
  if (!model->config().causal) demand.cache_tokens = demand.step_tokens + kBlockTokens * demand.sequences;
  runner.n_blocks = cache_blocks(model->cache_groups(), demand);
  runner.observers = options.observers;
  runner.product_observer = options.product_observer;
  runner.loading = options.loading;
  runner.capacity = step_capacity(*model, options);
  if (options.placement.n_gpu_layers == kAutoLayers) {
    std::vector<uint64_t> reserved = options.reserved;
    EngineOptions opened = options;
    opened.opened = runner.devices;
    const std::vector<DeviceUse> draft = plan_draft_memory(opened);
    reserved.resize(std::max(reserved.size(), draft.size()));
    for (size_t d = 0; d < draft.size(); ++d) reserved[d] += draft[d].needed();
    const Fit fit = fit_parts(model, runner, reserved);
    runner.placement.n_gpu_layers = fit.parts;
    if (note && !fit.shortage.empty()) note(partial_text(fit, model->n_layer(), *runner.devices));
  }
  return runner;
}

std::vector<DeviceUse> plan_memory(std::shared_ptr<Model> model, const EngineOptions& options) {
  const RunnerOptions runner = runner_options(model, options, nullptr);
  return plan_memory_use(std::move(model), runner);
}

}  // namespace infer
