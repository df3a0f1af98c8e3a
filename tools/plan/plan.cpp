#include "tools/plan/plan.h"

#include <cmath>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <string_view>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "src/engine/draft/load_draft.h"
#include "src/engine/engine.h"
#include "src/text/ordered_json.h"
#include "tools/arguments.h"
#include "tools/flags.h"
#include "tools/model_by_name.h"
#include "tools/plan/memory_plan.h"
#include "tools/plan/shape_file.h"
#include "tools/speculation_flags.h"

namespace infer {
namespace {

using nlohmann::ordered_json;

struct PlanFlags {
  ModelFlags model;  // the file may be "" if there is a shape
  ShapeFlags shape;
  SpeculationFlags speculation;
  double requests_per_second = 0;
  int64_t output_tokens = 0;     // per answer
  double tokens_per_second = 0;  // of one replica; 0: measured
  bool json = false;
};

struct Capacity {
  double tokens_per_second = 0;  // per replica
  bool measured = false;
  int64_t replicas = 0;
  double sequences = 0;  // in progress at the same time, over all replicas
};

// Tokens per second of one replica that generates for all its sequences at once.
double measure(std::shared_ptr<Model> model, const EngineOptions& options) {
  constexpr int kPrompt = 16, kSteps = 24;
  EngineOptions small = options;
  small.context = std::min<int64_t>(choose_context(*model, options.context), kPrompt + 2 * kSteps);
  Engine engine(std::move(model), small);
  for (int i = 0; i < options.max_sequences; ++i) {
    Request request;
    request.id = static_cast<RequestId>(i) + 1;
    for (int t = 0; t < kPrompt; ++t) request.prompt.push_back((i * 31 + t * 7) % engine.model().n_vocab());
    request.max_new_tokens = kSteps;
    request.ignore_eog = true;
    request.sampling.temperature = 0;
    if (!engine.submit(std::move(request))) throw Error(ErrorCode::kOutOfMemory, "[plan] the queue is full");
  }
  while (!engine.idle()) engine.step();
  const EngineStats& stats = engine.stats();
  if (stats.decode_steps == 0 || stats.decode_seconds <= 0) return 0;
  return static_cast<double>(stats.decode_tokens) / stats.decode_seconds;
}

ordered_json to_json(const DeviceUse& use) {
  return {{"layers", use.n_layers},         {"weights", use.weights}, {"kv_cache", use.cache}, {"states", use.states},
          {"activations", use.activations}, {"staging", use.staging}, {"needed", use.needed()}};
}

// What a sequence stores in the cache, grouped by layers that cache alike.
ordered_json caches_json(const Model& model) {
  ordered_json caches = ordered_json::array();
  for (const CacheGroup& group : model.cache_groups()) {
    ordered_json entry = {{"kind", cache_kind_name(group.kind)}, {"layers", group.layers}};
    if (group.kind == CacheKind::kWindow) entry["window"] = group.window;
    caches.push_back(std::move(entry));
  }
  return caches;
}

// The names of the operations in a step; `infer devices --ops` lists which devices implement them.
std::set<std::string_view> operations(const Model& model) {
  Graph graph(1, 1);
  model.build(graph, {});
  std::set<std::string_view> names;
  for (const Node& node : graph.nodes()) names.insert(op_info(node.op).name);
  return names;
}

void print_json(const Model& model, const MemoryPlan& plan, const std::optional<Capacity>& capacity) {
  ordered_json devices = ordered_json::array();
  for (size_t d = 0; d < plan.uses.model.size(); ++d) {
    const DeviceUse& use = plan.uses.model[d];
    ordered_json types = ordered_json::object();
    for (const auto& [type, bytes] : use.weights_by_type) types[std::string(traits(type).name)] = bytes;
    ordered_json device = {{"device", use.device}};
    device.update(to_json(use));
    device["weights_mapped"] = use.is_host;
    device["weights_by_type"] = types;
    device["embedding"] = use.has_input;
    device["output"] = use.has_output;
    ordered_json ranges = ordered_json::array();
    for (const LayerRange& range : use.layers) ranges.push_back({range.first, range.last});
    device["layer_ranges"] = std::move(ranges);
    device["weights_of_other_layers"] = use.guest_weights;
    if (!plan.uses.draft.empty()) device["draft"] = to_json(plan.uses.draft[d]);
    device["needed"] = plan.uses.needed(d);
    device["free"] = use.memory.free;
    device["total"] = use.memory.total;
    devices.push_back(std::move(device));
  }
  ordered_json reasons = ordered_json::object();
  for (const PlanChoice& choice : plan.choices) reasons[choice.what] = choice.reason;
  ordered_json document = {{"model", model.name()},
                           {"architecture", model.architecture()},
                           {"context", plan.context},
                           {"parallel", plan.parallel},
                           {"kv_cache_per_token", plan.cache_per_token},
                           {"kv_cache", plan.cache},
                           {"caches", caches_json(model)},
                           {"operations", operations(model)},
                           {"devices", devices},
                           {"fits", plan.fits},
                           {"largest_context", plan.largest_context},
                           {"most_parallel", plan.most_parallel},
                           {"reasons", reasons}};
  if (!plan.uses.draft.empty()) document["draft_kv_cache_per_token"] = plan.draft_cache_per_token;
  if (capacity) {
    document["capacity"] = {{"tokens_per_second", capacity->tokens_per_second},
                            {"measured", capacity->measured},
                            {"replicas", capacity->replicas},
                            {"sequences", capacity->sequences}};
  }
  std::cout << document.dump() << '\n';
}

void print_bytes(const std::string& name, uint64_t bytes, const char* note = "") {
  char line[128];
  std::snprintf(line, sizeof(line), "  %-13s %s%s\n", name.c_str(), bytes_text(bytes).c_str(), note);
  std::cout << line;
}

// " (0 to 3, 8)"
std::string ranges_text(const DeviceUse& use) {
  std::string text;
  for (const LayerRange& range : use.layers) {
    text += (text.empty() ? "" : ", ") + std::to_string(range.first);
    if (range.last > range.first) text += " to " + std::to_string(range.last);
  }
  return text.empty() ? "" : " (" + text + ")";
}

void print_device(const MemoryPlan& plan, size_t d) {
  const DeviceUse& use = plan.uses.model[d];
  std::cout << '\n'
            << use.device << ": " << use.n_layers << (use.n_layers == 1 ? " layer" : " layers") << ranges_text(use)
            << (use.has_input ? ", embedding" : "") << (use.has_output ? ", output" : "") << '\n';
  print_bytes("weights", use.weights, use.is_host ? " (used directly from the mapped file)" : "");
  for (const auto& [type, bytes] : use.weights_by_type) print_bytes("  " + std::string(traits(type).name), bytes);
  if (use.guest_weights > 0) print_bytes("  elsewhere", use.guest_weights, " (of layers that are on another device)");
  print_bytes("KV cache", use.cache);
  if (use.states > 0) print_bytes("  states", use.states, " (of recurrent layers)");
  print_bytes("activations", use.activations);
  print_bytes("staging", use.staging);
  if (!plan.uses.draft.empty()) {
    const DeviceUse& draft = plan.uses.draft[d];
    std::cout << "  draft         " << bytes_text(draft.needed()) << ": weights " << bytes_text(draft.weights)
              << ", KV cache " << bytes_text(draft.cache) << ", activations " << bytes_text(draft.activations)
              << ", staging " << bytes_text(draft.staging) << '\n';
  }
  std::cout << "  needed        " << bytes_text(plan.uses.needed(d)) << " of " << bytes_text(use.memory.free)
            << " free (" << bytes_text(use.memory.total) << " in all)\n";
}

void print_text(const MemoryPlan& plan, const std::optional<Capacity>& capacity) {
  const char* sequences = plan.parallel == 1 ? " sequence" : " sequences";
  std::cout << "context         " << plan.context << " tokens for each of " << plan.parallel << sequences << '\n';
  std::cout << "KV cache        " << grouped(plan.cache_per_token) << " bytes per token, " << grouped(plan.cache)
            << " bytes in all (" << bytes_text(plan.cache) << ")\n";
  if (!plan.uses.draft.empty())
    std::cout << "of the draft    " << grouped(plan.draft_cache_per_token) << " bytes per token\n";
  for (size_t d = 0; d < plan.uses.model.size(); ++d) print_device(plan, d);
  std::cout << '\n' << (plan.fits ? "It fits.\n" : "It does not fit.\n");
  std::cout << "largest context for " << plan.parallel << sequences << ": " << plan.largest_context << " tokens\n";
  std::cout << "most sequences with a context of " << plan.context << ": " << plan.most_parallel << "\n\nWhy\n";
  for (const PlanChoice& choice : plan.choices) {
    char name[32];
    std::snprintf(name, sizeof(name), "  %-16s ", choice.what.c_str());
    std::cout << name << choice.reason << '\n';
  }
  if (!capacity) return;
  char line[160];
  std::snprintf(line, sizeof(line), "\none replica: %.1f tokens/s (%s); %.1f sequences in progress; replicas: %lld\n",
                capacity->tokens_per_second, capacity->measured ? "measured now" : "as given", capacity->sequences,
                static_cast<long long>(capacity->replicas));
  std::cout << line;
}

int run_plan(const PlanFlags& flags) {
  if (flags.model.model.empty() == flags.shape.name.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "Give either -m or --shape.");
  }
  const bool asks_capacity = flags.requests_per_second > 0 || flags.output_tokens > 0;
  if (asks_capacity && (flags.requests_per_second <= 0 || flags.output_tokens <= 0)) {
    throw Error(ErrorCode::kInvalidArgument, "--rps and --output-tokens go together. Give both.");
  }
  if (asks_capacity && flags.tokens_per_second <= 0 && !flags.shape.name.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "The speed of a --shape cannot be measured. Give it with --tokens-per-second.");
  }
  EngineOptions options = flags.model.engine_options();
  const auto file = flags.shape.name.empty()
                        ? GgufFile::open(find_model_file(flags.model.model, {}, options), flags.model.open_options)
                        : open_shape(flags.shape.name, flags.shape.type, RandomWeights::kEmpty);
  const std::shared_ptr<Model> model = load_model(file);
  options.speculation = flags.speculation.options();
  options = with_prediction(options, *model);
  const MemoryPlan plan = plan_memory_of({model, options, flags.model.gpu_layers});

  std::optional<Capacity> capacity;
  if (asks_capacity && (plan.fits || flags.tokens_per_second > 0)) {
    capacity.emplace();
    capacity->measured = flags.tokens_per_second <= 0;
    capacity->tokens_per_second = capacity->measured ? measure(model, options) : flags.tokens_per_second;
    const double needed = flags.requests_per_second * static_cast<double>(flags.output_tokens);
    capacity->replicas = static_cast<int64_t>(std::ceil(needed / capacity->tokens_per_second));
    // Little's law: arrivals per second times the duration of an answer in seconds.
    const double per_sequence = capacity->tokens_per_second / plan.parallel;
    capacity->sequences = flags.requests_per_second * static_cast<double>(flags.output_tokens) / per_sequence;
  }
  flags.json ? print_json(*model, plan, capacity) : print_text(plan, capacity);
  if (!std::cout.flush()) throw Error(ErrorCode::kIo, "Cannot write to standard output.");
  return plan.fits ? 0 : 1;
}

}  // namespace

std::function<int()> define_plan(CLI::App& app) {
  const auto o = std::make_shared<PlanFlags>();
  add_model_flags(app, o->model, false);
  add_shape_flags(app, o->shape, "Use a well-known shape instead of a file");
  add_speculation_flags(app, o->speculation);
  app.add_option("--parallel", o->model.engine.max_sequences,
                 "Concurrent sequences, each with a full context (default: 1)")
      ->check(whole_number(1, kMostParallel))
      ->type_name("N");
  app.add_option("--rps", o->requests_per_second, "Compute the replicas needed for this many requests per second")
      ->check(number_above_zero())
      ->type_name("R");
  app.add_option("--output-tokens", o->output_tokens, "Tokens per answer, for --rps")
      ->check(whole_number(int64_t{1}, int64_t{1} << 40))
      ->type_name("T");
  app.add_option("--tokens-per-second", o->tokens_per_second, "Speed of one replica, for --rps (default: measured now)")
      ->check(number_above_zero())
      ->type_name("X");
  app.add_flag("--json", o->json, "Print one JSON document");
  return [o] { return run_plan(*o); };
}

}  // namespace infer
