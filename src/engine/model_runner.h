// Runs steps of a model: owns the KV cache, activation arenas and plans (one per bucket) on the devices where the parts
// of the model are placed, and turns StepInputs into logits. Knows nothing of requests or sequences. One thread.
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ggml-like/plan.h"
#include "src/engine/device_set.h"
#include "src/engine/placement.h"
#include "src/model/model.h"

namespace infer {

struct RunnerOptions {
  std::shared_ptr<DeviceSet> devices;
  PlacementOptions placement;  // REQUIRES n_gpu_layers other than kAutoLayers
  DataType key_type = DataType::kF32, value_type = DataType::kF32;
  bool default_cache_types = true;  // ignore the two above and take the default of the first device with layers
  int64_t n_blocks = 0;             // KV blocks of every layer
  StepCapacity capacity;            // of the steps that will be run
  bool strict_offload = false;      // see PlanOptions::strict
  std::vector<Observer> observers;
  std::function<void(const ProductInput& input)> product_observer;
  Profile* profile = nullptr;  // see PlanOptions
};

// Bytes a runner takes on one device, by purpose.
struct DeviceUse {
  std::string device;
  bool is_host = false;  // weights are used where the file is mapped, not copied
  int n_layers = 0;
  std::vector<LayerRange> layers;              // the same, where they are
  bool has_input = false, has_output = false;  // the embedding, the output matrix
  uint64_t weights = 0, cache = 0, activations = 0;
  uint64_t staging = 0;                          // a step's inputs, and on the host its results
  uint64_t guest_weights = 0;                    // of `weights`, matrices of layers that are on another device
  std::map<DataType, uint64_t> weights_by_type;  // bytes
  uint64_t cache_block = 0;                      // bytes of one KV block in all of the device's layers
  DeviceMemory memory;                           // before anything was allocated

  uint64_t needed() const { return weights + cache + activations + staging; }
};

class ModelRunner {
 public:
  // Places the parts and sums up what they take; nothing is allocated. Throws Error(kInvalidArgument) for tensor rules
  // that name no device or match no matrix.
  ModelRunner(std::shared_ptr<Model> model, const RunnerOptions& options);
  ~ModelRunner();
  ModelRunner(const ModelRunner&) = delete;
  ModelRunner& operator=(const ModelRunner&) = delete;

  // Takes the memory and brings the weights where they belong; REQUIRED once, before run(). All memory is taken before
  // the first byte is copied, so that a failure is cheap. Throws Error(kOutOfMemory) naming the sizes; then the runner
  // is of no further use, and fails_on_host() says whose memory it was.
  void load();
  bool fails_on_host() const { return fails_on_host_; }

  // Computes one step. What output row i gives are logits(i), where asked for, and hidden(i), until the next run. After
  // a step without outputs a device of its own memory may still be at work while the host prepares the next step.
  void run(const StepInputs& step);
  std::span<const float> logits(int output) const;  // [n_vocab]
  std::span<const float> hidden(int output) const;  // [n_embd]: after the final norm
  // Copies a whole KV block in every layer of a cache group; blocks of other groups have ids of their own.
  void copy_block(int group, int32_t from, int32_t to);

  // The CPU's threads, for work on what a step brought: see Stream::parallel_for(). From load() on, between two runs.
  int n_threads() const { return streams_[0]->n_threads(); }
  void parallel_for(int64_t n, const std::function<void(int64_t piece, int thread)>& body) {
    streams_[0]->parallel_for(n, body);
  }

  const Model& model() const { return *model_; }
  const Placement& placement() const { return placement_; }
  // Of all plans so far, each (operation, type, device) once.
  const std::vector<Fallback>& fallbacks() const { return fallbacks_; }
  // How often a node has run on the CPU for want of a kernel, in the order of fallbacks().
  const std::vector<int64_t>& fallback_runs() const { return fallback_runs_; }
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
  // Bytes per second at which one token's weights can be read, each device reading its share after the other, measured
  // now (some 0.1 s per device); 0 where a device does not know.
  double read_bandwidth();
  MachineLimits measure_limits();  // likewise (some 0.2 s)
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
    std::vector<std::pair<size_t, int>> fallbacks;  // index into fallbacks_, nodes of this plan
  };
  void place();
  void place_weights();
  void sum_up(const Plan& plan);
  std::unique_ptr<Buffer> allocate(size_t device, size_t bytes);
  void allocate_weights();
  void upload_weights();
  void allocate_cache();
  BufferPlace weight_on(const Weight& weight, int device);
  Entry make_entry(const Bucket& bucket);
  Entry& keep(const Bucket& bucket, Entry made);
  void add_fallbacks(Entry& entry);
  Entry& entry(const Bucket& bucket);
  void synchronize();
  CacheRef cache_of_layer(int layer) const;
  std::vector<int> all_layers() const;  // the ends too
  uint64_t bytes_per_token(int device) const;
  Operations operations_of(int layer) const;
  Bucket largest() const;

  std::shared_ptr<Model> model_;
  RunnerOptions options_;
  std::vector<Device*> devices_;  // [0] is the CPU
  Placement placement_;
  std::map<const Weight*, int> weight_device_;
  Entry largest_;  // until load() keeps it

  // From load() on. Streams come last: they end before the memory that their work may be using.
  std::map<std::pair<int, const void*>, std::unique_ptr<Buffer>> weights_;  // by device and host data
  std::vector<std::unique_ptr<Buffer>> caches_;                             // one per layer
  std::vector<std::unique_ptr<Buffer>> arenas_;                             // one per device
  std::vector<std::unique_ptr<Buffer>> step_buffers_;  // a step's inputs, per device of its own memory
  std::map<Bucket, Entry> plans_;
  std::vector<std::unique_ptr<Stream>> streams_;

  bool fails_on_host_ = false;
  std::vector<Fallback> fallbacks_;
  std::vector<int64_t> fallback_runs_;
  std::vector<DeviceUse> use_;  // one per device
  std::vector<float> logits_, hidden_;
};

}  // namespace infer
