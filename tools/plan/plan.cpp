#include "tools/plan/plan.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "ggml-like/error.h"
#include "src/engine/engine.h"
#include "tools/plan/shape_file.h"

namespace infer {
namespace {

using nlohmann::ordered_json;

// What a plan says besides the bytes on each device.
struct Sums {
  std::vector<DeviceUse> devices;
  int64_t context = 0;
  int parallel = 1;
  uint64_t cache_per_token = 0;  // bytes over all devices
  uint64_t cache = 0;
  bool fits = true;
  int64_t most_tokens = 0;      // of all sequences together, that the memory left by weights and activations holds
  int64_t largest_context = 0;  // with this many sequences, at most what the model was trained with
  int64_t most_parallel = 0;    // with this context
  std::vector<std::string> reasons;
};

struct Capacity {
  double tokens_per_second = 0;  // of one replica
  bool measured = false;
  int64_t replicas = 0;
  double sequences = 0;  // under way at the same time, over all replicas
};

std::string bytes_text(uint64_t bytes) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.2f GiB", static_cast<double>(bytes) / (1u << 30));
  if (bytes < 1u << 30) std::snprintf(text, sizeof(text), "%.2f MiB", static_cast<double>(bytes) / (1u << 20));
  return text;
}

// 42949672960 -> 42,949,672,960
std::string grouped(uint64_t n) {
  std::string digits = std::to_string(n);
  for (int64_t at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

Sums sum_up(const Model& model, std::vector<DeviceUse> devices, const EngineOptions& options) {
  Sums s;
  s.devices = std::move(devices);
  s.context = choose_context(model, options.context);
  s.parallel = options.max_sequences;
  s.most_tokens = INT64_MAX;
  for (const DeviceUse& use : s.devices) {
    s.cache += use.cache;
    s.cache_per_token += use.cache_block / kBlockTokens;
    if (use.needed() > use.memory.free) {
      s.fits = false;
      s.reasons.push_back(concat(
          use.device, ": ", bytes_text(use.needed()), " needed, ", bytes_text(use.memory.free),
          " free: ", use.weights > use.memory.free ? "the weights alone do not fit" : "the KV cache is too large"));
    }
    const uint64_t fixed = use.weights + use.activations;
    const uint64_t left = use.memory.free > fixed ? use.memory.free - fixed : 0;
    if (use.cache_block > 0) {
      s.most_tokens = std::min<int64_t>(s.most_tokens, static_cast<int64_t>(left / use.cache_block) * kBlockTokens);
    }
  }
  if (s.most_tokens == INT64_MAX) s.most_tokens = 0;
  const int64_t blocks = s.most_tokens / kBlockTokens;
  s.largest_context = blocks / s.parallel * kBlockTokens;
  s.most_parallel = blocks / blocks_for(s.context);
  if (model.context_length() > 0 && s.largest_context > model.context_length()) {
    s.largest_context = model.context_length();
    s.reasons.push_back(concat("the model was trained with ", model.context_length(), " tokens"));
  }
  if (options.context == 0) {
    s.reasons.push_back(concat("no -c was given: the model's own context, at most ", kDefaultContext));
  }
  return s;
}

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
  return static_cast<double>(stats.decode_steps * options.max_sequences) / stats.decode_seconds;
}

void print_json(const Model& model, const Sums& s, const std::optional<Capacity>& capacity) {
  ordered_json devices = ordered_json::array();
  for (const DeviceUse& use : s.devices) {
    ordered_json types = ordered_json::object();
    for (const auto& [type, bytes] : use.weights_by_type) types[std::string(traits(type).name)] = bytes;
    devices.push_back({{"device", use.device},
                       {"layers", use.n_layers},
                       {"weights", use.weights},
                       {"weights_mapped", use.maps_weights},
                       {"weights_by_type", types},
                       {"kv_cache", use.cache},
                       {"activations", use.activations},
                       {"needed", use.needed()},
                       {"free", use.memory.free},
                       {"total", use.memory.total}});
  }
  ordered_json document = {{"model", model.name()},
                           {"architecture", model.architecture()},
                           {"context", s.context},
                           {"parallel", s.parallel},
                           {"kv_cache_per_token", s.cache_per_token},
                           {"kv_cache", s.cache},
                           {"devices", devices},
                           {"fits", s.fits},
                           {"largest_context", s.largest_context},
                           {"most_parallel", s.most_parallel},
                           {"reasons", s.reasons}};
  if (capacity) {
    document["capacity"] = {{"tokens_per_second", capacity->tokens_per_second},
                            {"measured", capacity->measured},
                            {"replicas", capacity->replicas},
                            {"sequences", capacity->sequences}};
  }
  std::cout << document.dump() << '\n';
}

void print_text(const Sums& s, const std::optional<Capacity>& capacity) {
  std::cout << "context         " << s.context << " tokens for each of " << s.parallel
            << (s.parallel == 1 ? " sequence\n" : " sequences\n");
  std::cout << "KV cache        " << grouped(s.cache_per_token) << " bytes per token, " << grouped(s.cache)
            << " bytes in all (" << bytes_text(s.cache) << ")\n";
  for (const DeviceUse& use : s.devices) {
    std::cout << '\n' << use.device << ": " << use.n_layers << " layers\n";
    std::cout << "  weights       " << bytes_text(use.weights)
              << (use.maps_weights ? " (used where the file is mapped)" : "") << '\n';
    for (const auto& [type, bytes] : use.weights_by_type) {
      char line[96];
      std::snprintf(line, sizeof(line), "    %-11s %s\n", std::string(traits(type).name).c_str(),
                    bytes_text(bytes).c_str());
      std::cout << line;
    }
    std::cout << "  KV cache      " << bytes_text(use.cache) << '\n';
    std::cout << "  activations   " << bytes_text(use.activations) << '\n';
    std::cout << "  needed        " << bytes_text(use.needed()) << " of " << bytes_text(use.memory.free) << " free ("
              << bytes_text(use.memory.total) << " in all)\n";
  }
  std::cout << '\n' << (s.fits ? "It fits.\n" : "It does not fit.\n");
  std::cout << "largest context for " << s.parallel << (s.parallel == 1 ? " sequence: " : " sequences: ")
            << s.largest_context << " tokens\n";
  std::cout << "most sequences with a context of " << s.context << ": " << s.most_parallel << '\n';
  for (const std::string& reason : s.reasons) std::cout << "- " << reason << '\n';
  if (!capacity) return;
  char line[160];
  std::snprintf(line, sizeof(line), "one replica: %.1f tokens/s (%s); %.1f sequences under way; replicas: %lld\n",
                capacity->tokens_per_second, capacity->measured ? "measured now" : "as given", capacity->sequences,
                static_cast<long long>(capacity->replicas));
  std::cout << line;
}

}  // namespace

int run_plan(const PlanFlags& flags) {
  if (flags.model.model.empty() == flags.shape.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "[plan] either -m or --shape, found both or neither");
  }
  const bool asks_capacity = flags.requests_per_second > 0 || flags.output_tokens > 0;
  if (asks_capacity && (flags.requests_per_second <= 0 || flags.output_tokens <= 0)) {
    throw Error(ErrorCode::kInvalidArgument, "[plan] --rps and --output-tokens together, found one");
  }
  if (asks_capacity && flags.tokens_per_second <= 0 && !flags.shape.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "[plan] --tokens-per-second for a --shape, which has nothing to measure");
  }
  const auto file = flags.shape.empty() ? GgufFile::open(flags.model.model)
                                        : open_shape(flags.shape, flags.type, RandomWeights::kEmpty);
  const std::shared_ptr<Model> model = load_model(file);
  EngineOptions options = flags.model.engine_options();
  options.max_sequences = flags.parallel;
  const Sums sums = sum_up(*model, plan_memory(model, options), options);

  std::optional<Capacity> capacity;
  if (asks_capacity && (sums.fits || flags.tokens_per_second > 0)) {
    capacity.emplace();
    capacity->measured = flags.tokens_per_second <= 0;
    capacity->tokens_per_second = capacity->measured ? measure(model, options) : flags.tokens_per_second;
    const double needed = flags.requests_per_second * static_cast<double>(flags.output_tokens);
    capacity->replicas = static_cast<int64_t>(std::ceil(needed / capacity->tokens_per_second));
    // Little's law: arrivals per second times the seconds of an answer.
    const double per_sequence = capacity->tokens_per_second / flags.parallel;
    capacity->sequences = flags.requests_per_second * static_cast<double>(flags.output_tokens) / per_sequence;
  }
  flags.json ? print_json(*model, sums, capacity) : print_text(sums, capacity);
  if (!std::cout.flush()) throw Error(ErrorCode::kIo, "[plan] standard output can not be written");
  return sums.fits ? 0 : 1;
}

}  // namespace infer
