#include "tools/plan/memory_plan.h"

#include <algorithm>
#include <cstdio>

#include "ggml-like/error.h"

namespace infer {
namespace {

// Memory that several devices may share: that of the host, or a device's own.
struct Pool {
  std::string devices;  // "cpu", "cpu and ref"
  uint64_t needed = 0, weights = 0, free = 0;

  bool fits() const { return needed <= free; }
};

struct Uses {
  std::vector<DeviceUse> model, draft;
};

std::vector<Pool> pools_of(const Uses& uses) {
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
    for (const auto* one : {&uses.model, &uses.draft}) {
      if (one->empty()) continue;
      pool.needed += (*one)[d].needed();
      pool.weights += (*one)[d].weights;
    }
  }
  return pools;
}

class Planner {
 public:
  explicit Planner(const PlanQuestion& question) : question_(question), uses_(ask(question.options)) {}

  const Uses& uses() const { return uses_; }
  Uses ask(EngineOptions options) const {
    Uses uses;
    if (question_.draft) {
      EngineOptions draft = options;
      draft.n_gpu_layers = kAllLayers;  // a draft is small, and runs before every step
      uses.draft = plan_memory(question_.draft, draft);
      options.reserved = uses.draft.back().needed();
    }
    uses.model = plan_memory(question_.model, options);
    return uses;
  }
  // With the memory that was free at first: what other programs do meanwhile does not count. Empty for sizes beyond any
  // memory.
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
  // The largest number of units from 0 to `most` with which it fits: change(options, n) sets them.
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
  const Uses uses_;
};

// How many of the n_layer + 1 layers (the output is the last; one more: the embedding as well) are on the device.
int layers_on(const DeviceUse& use) { return use.n_layers + use.has_output + use.has_input; }

std::string why_layers(const PlanQuestion& question, const Planner& planner) {
  const std::vector<DeviceUse>& devices = planner.uses().model;
  const int n = question.model->n_layer();
  if (devices.size() == 1)
    return concat("all ", n, " on ", devices[0].device, ": no other device is asked for (--device)");
  const DeviceUse& device = devices[1];
  const int on = layers_on(device);
  const std::string share =
      on > n ? concat("all ", n, " on ", device.device)
             : concat("the last ", device.n_layers, " of ", n, on > 0 ? " and the output" : "", " on ", device.device);
  if (question.options.n_gpu_layers == kAllLayers) return share + ": -ngl all";
  if (question.options.n_gpu_layers != kAutoLayers) return concat(share, ": -ngl ", question.layers);
  if (on > n + 1) return share + ": -ngl auto, they fit";
  const std::string shortage =
      planner.shortage(on + 1, [](EngineOptions& o, int64_t more) { o.n_gpu_layers = static_cast<int>(more); });
  return concat(share, ": -ngl auto, one more ", shortage);
}

std::string why_context(const PlanQuestion& question, int64_t context) {
  const int64_t trained = question.model->context_length();
  const std::string of_model =
      trained > 0 ? concat("the model was trained with ", trained) : "the model does not say its own";
  if (question.options.context > 0) return concat("-c ", question.options.context, "; ", of_model);
  return context == trained ? of_model : concat("without -c at most ", kDefaultContext, "; ", of_model);
}

void add_largest_context(const PlanQuestion& question, const Planner& planner, MemoryPlan& plan) {
  const auto change = [](EngineOptions& o, int64_t blocks) { o.context = std::max<int64_t>(blocks, 1) * kBlockTokens; };
  const int64_t trained = question.model->context_length();
  constexpr int64_t kMost = int64_t{1} << 40;  // tokens; the engine takes no more
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
                            ? concat("--parallel goes no further than ", kMostParallel)
                            : concat(plan.most_parallel + 1, " ", planner.shortage(plan.most_parallel + 1, change))});
}

void add_fit(const Uses& uses, MemoryPlan& plan) {
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

uint64_t MemoryPlan::needed(size_t device) const {
  return devices[device].needed() + (draft.empty() ? 0 : draft[device].needed());
}

std::string bytes_text(uint64_t bytes) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.2f GiB", static_cast<double>(bytes) / (1u << 30));
  if (bytes < 1u << 30) std::snprintf(text, sizeof(text), "%.2f MiB", static_cast<double>(bytes) / (1u << 20));
  return text;
}

MemoryPlan plan_memory_of(const PlanQuestion& question) {
  if (question.draft && question.draft->n_vocab() != question.model->n_vocab()) {
    throw Error(ErrorCode::kInvalidArgument, concat("[plan] --draft-model: a vocabulary of ", question.model->n_vocab(),
                                                    " tokens, as the model has, found ", question.draft->n_vocab()));
  }
  const Planner planner(question);
  MemoryPlan plan;
  plan.devices = planner.uses().model;
  plan.draft = planner.uses().draft;
  plan.context = choose_context(*question.model, question.options.context);
  plan.parallel = question.options.max_sequences;
  for (const DeviceUse& use : plan.devices) {
    plan.cache += use.cache;
    plan.cache_per_token += use.cache_block / kBlockTokens;
  }
  for (const DeviceUse& use : plan.draft) plan.draft_cache_per_token += use.cache_block / kBlockTokens;
  plan.choices.push_back({"layers", why_layers(question, planner)});
  plan.choices.push_back({"context", why_context(question, plan.context)});
  plan.choices.push_back({"parallel", concat("--parallel ", plan.parallel)});
  add_fit(planner.uses(), plan);
  add_largest_context(question, planner, plan);
  add_most_parallel(planner, plan);
  return plan;
}

}  // namespace infer
