#include "tools/plan/memory_plan.h"

#include <algorithm>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "src/engine/draft/load_draft.h"

namespace infer {
namespace {

// A memory that one or more devices use: the host's, or a device's own.
struct Pool {
  std::string devices;  // "cpu", "cpu and ref"
  uint64_t needed = 0, weights = 0, free = 0;

  bool fits() const { return needed <= free; }
};

std::vector<Pool> pools_of(const ModelUses& uses) {
  std::vector<Pool> pools;
  size_t host = SIZE_MAX;
  for (size_t d = 0; d < uses.model.size(); ++d) {
    const DeviceUse& use = uses.model[d];
    if (!use.is_host || host == SIZE_MAX) {
      if (use.is_host) host = pools.size();
      pools.push_back({use.device, 0, 0, use.memory.free});
    } else {
      pools[host].devices += " and " + use.device;
    }
    Pool& pool = use.is_host ? pools[host] : pools.back();
    pool.needed += uses.needed(d);
    pool.weights += use.weights + (uses.draft.empty() ? 0 : uses.draft[d].weights);
  }
  return pools;
}

class Planner {
 public:
  explicit Planner(const PlanQuestion& question)
      : question_(question), devices_(open_devices(question.options)), uses_(ask(question.options)) {}

  const ModelUses& uses() const { return uses_; }
  const DeviceSet& devices() const { return *devices_; }
  ModelUses ask(EngineOptions options) const {
    options.opened = devices_;
    return {plan_memory(question_.model, options), plan_draft_memory(options)};
  }
  // Uses the memory that was free at first, to ignore changes by other programs. Empty if a size overflows.
  std::vector<Pool> pools(const EngineOptions& options) const {
    try {
      std::vector<Pool> pools = pools_of(ask(options)), first = pools_of(uses_);
      for (size_t i = 0; i < pools.size(); ++i) pools[i].free = first[i].free;
      return pools;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kOutOfMemory) throw;
      return {};
    }
  }
  bool fits(const EngineOptions& options) const {
    const std::vector<Pool> all = pools(options);
    return !all.empty() && std::all_of(all.begin(), all.end(), [](const Pool& pool) { return pool.fits(); });
  }
  // The largest number of units from 0 to `most` that fits; change(options, n) sets them.
  template <typename Change>
  int64_t largest(int64_t most, const Change& change) const {
    int64_t low = 0, high = most;
    while (low < high) {
      const int64_t middle = low + (high - low + 1) / 2;
      EngineOptions options = question_.options;
      change(options, middle);
      if (fits(options)) low = middle;
      else high = middle - 1;
    }
    return low;
  }
  // Parts on devices other than the CPU.
  int moved_parts() const {
    int parts = 0;
    for (size_t d = 1; d < uses_.model.size(); ++d) {
      const DeviceUse& use = uses_.model[d];
      parts += use.n_layers + use.has_output + use.has_input;
    }
    return parts;
  }
  // What this many parts would need on a device that is too small for them according to -ngl auto.
  std::string shortage_of_parts(int parts) const {
    EngineOptions options = question_.options;
    options.placement.n_gpu_layers = parts;
    ModelUses more = ask(options);
    std::vector<uint64_t> draft;
    for (const DeviceUse& use : more.draft) draft.push_back(use.needed());
    for (size_t d = 0; d < more.model.size(); ++d) more.model[d].memory = uses_.model[d].memory;
    const std::string shortage = shortage_of(more.model, draft);
    return "one more would " + (shortage.empty() ? "not fit" : "need " + shortage);
  }
  // What n units would need of the memory that is too small for them.
  template <typename Change>
  std::string shortage(int64_t n, const Change& change) const {
    EngineOptions options = question_.options;
    change(options, n);
    const std::vector<Pool> all = pools(options);
    const auto small = std::find_if(all.begin(), all.end(), [](const Pool& pool) { return !pool.fits(); });
    if (small == all.end()) return "would be larger than any memory";
    return concat("would need ", bytes_text(small->needed), " of the ", bytes_text(small->free), " that ",
                  small->devices, small->devices.find(' ') == std::string::npos ? " has" : " have", " free");
  }

 private:
  const PlanQuestion& question_;
  const std::shared_ptr<DeviceSet> devices_;
  const ModelUses uses_;
};

// "the last 3 of 5 and the output on vulkan0", or the ranges if there are several devices.
std::string where_layers(const std::vector<DeviceUse>& devices, int n_layer, int moved) {
  const bool last_ones = devices.size() == 2 &&
                         (devices[1].layers.empty() || devices[1].layers.back().last == n_layer - 1) &&
                         (moved == 0 || devices[1].has_output);
  if (last_ones && moved > n_layer) return concat("all ", n_layer, " on ", devices[1].device);
  if (last_ones && devices[1].n_layers == 0) {
    return concat(moved > 0 ? "the output alone on " : "nothing on ", devices[1].device);
  }
  if (last_ones) {
    return concat("the last ", devices[1].n_layers, " of ", n_layer, moved > 0 ? " and the output" : "", " on ",
                  devices[1].device);
  }
  std::string text;
  for (const DeviceUse& use : devices) {
    for (const LayerRange& range : use.layers) {
      text += concat(text.empty() ? "" : ", ", layers_text(range.first, range.last), " on ", use.device);
    }
  }
  for (const DeviceUse& use : devices) {
    if (use.has_output) text += concat(", the output on ", use.device);
  }
  return text;
}

std::string why_layers(const PlanQuestion& question, const Planner& planner) {
  const std::vector<DeviceUse>& devices = planner.uses().model;
  const int n = question.model->n_layer(), asked = question.options.placement.n_gpu_layers;
  if (devices.size() == 1) {
    return concat("all ", n, " on ", devices[0].device,
                  question.options.devices.empty() ? ": no usable GPU was found" : ": --device names no other device");
  }
  const int moved = planner.moved_parts();
  const std::string where = where_layers(devices, n, moved);
  if (asked == kAllLayers) return where + ": -ngl all";
  if (asked != kAutoLayers) return concat(where, ": -ngl ", question.layers);
  const std::vector<int>& listed = planner.devices().of_layers;
  if (std::count(listed.begin(), listed.end(), 0) > 0) return where + ": -ngl auto";
  if (moved == placeable_parts(n)) return where + ": -ngl auto, they fit";
  return concat(where, ": -ngl auto, ", planner.shortage_of_parts(moved + 1));
}

// Which matrices are on another device than their layers, and the flags that caused it.
std::string why_tensors(const PlanQuestion& question, const std::vector<DeviceUse>& devices) {
  const PlacementOptions& o = question.options.placement;
  std::string where, flags;
  for (const DeviceUse& use : devices) {
    if (use.guest_weights == 0) continue;
    where += concat(where.empty() ? "" : ", ", bytes_text(use.guest_weights), " of other layers on ", use.device);
  }
  if (o.n_cpu_moe > 0) flags = "--n-cpu-moe";
  if (!o.tensor_rules.empty()) flags += concat(flags.empty() ? "" : " and ", "--tensor-device or -ot");
  return (where.empty() ? "all with their layers" : where) + ": " + flags;
}

std::string why_context(const PlanQuestion& question, int64_t context) {
  const int64_t trained = question.model->context_length();
  const std::string of_model =
      trained > 0 ? concat("the model was trained with ", trained) : "the model does not state its context";
  if (question.options.context > 0) return concat("-c ", question.options.context, "; ", of_model);
  return context == trained || question.options.context < 0
             ? of_model
             : concat("without -c at most ", kDefaultContext, "; ", of_model);
}

void add_largest_context(const PlanQuestion& question, const Planner& planner, MemoryPlan& plan) {
  const auto change = [](EngineOptions& o, int64_t blocks) { o.context = std::max<int64_t>(blocks, 1) * kBlockTokens; };
  const int64_t trained = question.model->context_length();
  constexpr int64_t kMost = int64_t{1} << 40;  // tokens; the engine's limit
  const int64_t most = (trained > 0 ? std::min(trained, kMost) : kMost) / kBlockTokens;
  const int64_t blocks = planner.largest(most, change);
  plan.largest_context = blocks == most && trained > 0 ? trained : blocks * kBlockTokens;
  plan.choices.push_back({"largest_context", blocks == most ? concat("the model was trained with ", trained)
                                                            : concat((blocks + 1) * kBlockTokens, " ",
                                                                     planner.shortage(blocks + 1, change))});
}

void add_most_parallel(const Planner& planner, MemoryPlan& plan) {
  const auto change = [](EngineOptions& o, int64_t n) { o.max_sequences = static_cast<int>(std::max<int64_t>(n, 1)); };
  plan.most_parallel = planner.largest(kMostParallel, change);
  plan.choices.push_back(
      {"most_parallel", plan.most_parallel == kMostParallel
                            ? concat("the maximum of --parallel is ", kMostParallel)
                            : concat(plan.most_parallel + 1, " ", planner.shortage(plan.most_parallel + 1, change))});
}

void add_fit(const ModelUses& uses, MemoryPlan& plan) {
  std::string reason;
  for (const Pool& pool : pools_of(uses)) {
    const std::string numbers =
        concat(pool.devices, ": ", bytes_text(pool.needed), " needed, ", bytes_text(pool.free), " free");
    if (pool.fits()) {
      if (plan.fits) reason += (reason.empty() ? "" : "; ") + numbers;
      continue;
    }
    if (plan.fits) reason.clear();
    plan.fits = false;
    reason += concat(reason.empty() ? "" : "; ", numbers, ": ",
                     pool.weights > pool.free ? "the weights alone do not fit" : "the KV cache is too large");
  }
  plan.choices.push_back({"fits", reason});
}

}  // namespace

uint64_t ModelUses::needed(size_t device) const {
  return model[device].needed() + (draft.empty() ? 0 : draft[device].needed());
}

MemoryPlan plan_memory_of(const PlanQuestion& question) {
  if (const auto& draft = question.options.speculation.draft) check_draft(*question.model, *draft);
  const Planner planner(question);
  MemoryPlan plan;
  plan.uses = planner.uses();
  plan.context = choose_context(*question.model, question.options.context);
  plan.parallel = question.options.max_sequences;
  for (const DeviceUse& use : plan.uses.model) {
    plan.cache += use.cache;
    plan.cache_per_token += use.cache_per_token;
  }
  for (const DeviceUse& use : plan.uses.draft) plan.draft_cache_per_token += use.cache_per_token;
  plan.choices.push_back({"layers", why_layers(question, planner)});
  if (question.options.placement.n_cpu_moe > 0 || !question.options.placement.tensor_rules.empty()) {
    plan.choices.push_back({"tensors", why_tensors(question, plan.uses.model)});
  }
  plan.choices.push_back({"context", why_context(question, plan.context)});
  plan.choices.push_back({"parallel", concat("--parallel ", plan.parallel)});
  add_fit(plan.uses, plan);
  add_largest_context(question, planner, plan);
  add_most_parallel(planner, plan);
  return plan;
}

}  // namespace infer
