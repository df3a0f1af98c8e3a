// Runs steps of a model: places layers on devices, owns the KV cache, activation arenas and plans (one per bucket), and
// turns StepInputs into logits. Knows nothing of requests or sequences. One thread.
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ggml-like/plan.h"
#include "src/model/model.h"

namespace infer {

inline constexpr int kAllLayers = -1;

struct RunnerOptions {
  std::string device = "cpu";     // where the layers that -ngl counts go
  int n_gpu_layers = kAllLayers;  // the last N layers (the output counts as one) on `device`, the rest on the CPU
  int n_threads = 0;              // of the CPU; 0: physical cores
  int n_threads_batch = 0;        // see DeviceOptions
  std::vector<int> processors;
  DataType key_type = DataType::kF32, value_type = DataType::kF32;
  bool default_cache_types = true;  // ignore the two above and take each device's own default
  int64_t n_blocks = 0;             // KV blocks of every layer
  StepCapacity capacity;            // of the steps that will be run
  bool deterministic = false;       // see DeviceOptions
  bool strict_offload = false;
  std::vector<Observer> observers;
  std::function<void(const ProductInput& input)> product_observer;
  Profile* profile = nullptr;  // see PlanOptions
};

// Bytes a runner takes on one device, by purpose.
struct DeviceUse {
  std::string device;
  bool is_host = false;  // weights are used where the file is mapped, not copied
  int n_layers = 0;
  bool has_input = false, has_output = false;  // the embedding, the output matrix
  uint64_t weights = 0, cache = 0, activations = 0;
  uint64_t staging = 0;                          // a step's inputs, and on the host its results
  std::map<DataType, uint64_t> weights_by_type;  // bytes
  uint64_t cache_block = 0;                      // bytes of one KV block in all of the device's layers
  DeviceMemory memory;                           // before anything was allocated

  uint64_t needed() const { return weights + cache + activations + staging; }
};

class ModelRunner {
 public:
  // Throws Error(kOutOfMemory) naming the sizes when cache or activations do not fit what the device has free.
  ModelRunner(std::shared_ptr<Model> model, const RunnerOptions& options);
  // What a runner with these options would take, by the same sums, with nothing allocated.
  static std::vector<DeviceUse> plan(std::shared_ptr<Model> model, const RunnerOptions& options);
  ~ModelRunner();
  ModelRunner(const ModelRunner&) = delete;
  ModelRunner& operator=(const ModelRunner&) = delete;

  // Computes one step. What output row i gives are logits(i), where asked for, and hidden(i), until the next run.
  void run(const StepInputs& step);
  std::span<const float> logits(int output) const;  // [n_vocab]
  std::span<const float> hidden(int output) const;  // [n_embd]: after the final norm
  // Copies a whole KV block in every layer.
  void copy_block(int32_t from, int32_t to);

  const Model& model() const { return *model_; }
  const std::vector<Fallback>& fallbacks() const { return fallbacks_; }
  const std::vector<DeviceUse>& memory_use() const { return use_; }
  // Bytes of weights that one token reads: those of the layers and the head; of a mixture of experts the share in use.
  uint64_t bytes_per_token() const;
  // Multiplications and additions of one token's products with quantized weights, and with float ones; without the
  // head, which only rows with logits go through.
  struct Operations {
    double quantized = 0, floats = 0;
  };
  Operations operations_per_token() const;
  Operations operations_of_head() const;
  // Bytes of keys and values of one token, in all layers.
  uint64_t cache_bytes_per_token() const;
  // Bytes per second at which the device of the layers reads its memory, measured now (some 0.1 s).
  double read_bandwidth();
  MachineLimits measure_limits();  // of the same device (some 0.2 s)
  std::string device_description() const;

 private:
  // What a plan is made for, each rounded up by bucket_size().
  struct Bucket {
    int tokens, outputs, logits;
    auto operator<=>(const Bucket&) const = default;
  };
  struct Entry {
    std::unique_ptr<Plan> plan;
    ModelOutputs outputs;
  };
  struct PlanOnly {};
  // Opens the devices, places the layers and sums up what is needed.
  ModelRunner(std::shared_ptr<Model> model, const RunnerOptions& options, PlanOnly);
  void open_devices();
  void place_layers();
  void sum_up();
  void upload_weights();
  void allocate_cache();
  Entry make_entry(const Bucket& bucket) const;
  int device_of_layer(int layer) const;
  CacheRef cache_of_layer(int layer) const;
  Operations operations_of(int layer) const;
  Entry& entry(const Bucket& bucket);
  Bucket largest() const;

  std::shared_ptr<Model> model_;
  RunnerOptions options_;
  std::vector<std::unique_ptr<Device>> devices_;  // [0] is the CPU
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Buffer>> weight_buffers_;
  std::vector<std::unique_ptr<Buffer>> caches_;        // one per layer
  std::vector<std::unique_ptr<Buffer>> arenas_;        // one per device
  std::vector<std::unique_ptr<Buffer>> step_buffers_;  // the step's inputs, per device of its own memory
  std::map<Bucket, Entry> plans_;
  std::vector<Fallback> fallbacks_;
  std::vector<DeviceUse> use_;  // one per device
  std::vector<float> logits_, hidden_;
};

}  // namespace infer
