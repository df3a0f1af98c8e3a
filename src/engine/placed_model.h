// A model whose parts are placed on devices, and the plans of its steps. Allocates no device memory, so that `infer
// plan` and -ngl auto can compute exactly what a run would take.
#pragma once

#include <compare>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "ggml-like/plan.h"
#include "src/engine/device_set.h"
#include "src/engine/placement.h"
#include "src/model/model.h"

namespace infer {

// Gets the bytes of weights that have been copied towards devices with memory of their own, and how many there are,
// after each weight. Not called if there are none.
using LoadingProgress = std::function<void(uint64_t done, uint64_t total)>;

struct RunnerOptions {
  std::shared_ptr<DeviceSet> devices;
  PlacementOptions placement;                    // REQUIRES: n_gpu_layers is not kAutoLayers
  std::optional<DataType> key_type, value_type;  // of the KV cache; unset: as the first device with layers prefers
  std::vector<int32_t> n_blocks;                 // KV blocks per cache group
  StepCapacity capacity;                         // of the largest step that will run
  bool strict_offload = false;                   // see PlanOptions::strict
  std::vector<Observer> observers;
  std::function<void(const ProductInput& input)> product_observer;
  Profile* profile = nullptr;  // see PlanOptions
  LoadingProgress loading;     // may be null
};

// What a layer caches in one group.
struct LayerCache {
  CacheDesc desc;
  int device = 0;          // index into devices()
  size_t block_bytes = 0;  // of a block, or of a slot
  int64_t n_blocks = 0;

  bool is_state() const { return desc.slot_values > 0; }
};

// Constant for the life of a run. Plans and memory refer to it, so it must outlive them and cannot move.
class PlacedModel {
 public:
  // Throws what place_model() throws, and Error(kInvalidArgument) for cache types that do not fit the model's heads.
  PlacedModel(std::shared_ptr<const Model> model, RunnerOptions options);
  PlacedModel(const PlacedModel&) = delete;
  PlacedModel& operator=(const PlacedModel&) = delete;

  const Model& model() const { return *model_; }
  const RunnerOptions& options() const { return options_; }
  const Placement& placement() const { return placement_; }
  CacheTypes cache_types() const { return cache_types_; }
  const std::vector<Device*>& devices() const { return devices_; }  // [0] is the CPU
  Device& device_of_layer(int layer) const { return *devices_[static_cast<size_t>(placement_.of_layer(layer))]; }

  // On the layer's device, or on the CPU if that device does not support such a cache.
  std::vector<LayerCache> caches(int layer) const;

 private:
  const std::shared_ptr<const Model> model_;
  const RunnerOptions options_;
  const std::vector<Device*> devices_;
  const Placement placement_;
  const CacheTypes cache_types_;
};

// The row counts a plan is made for, each rounded up by bucket_size(), and what it returns for each row of logits: the
// best `selected` of them and the row's log-sum-exp, or all of them if 0.
struct Bucket {
  int tokens = 0, outputs = 0, logits = 0;
  int selected = 0;
  auto operator<=>(const Bucket&) const = default;
};
inline constexpr int kMostSelected = 64;
// For steps that need only the best `n_deciding` logits of each row; 0: all of them.
Bucket bucket_of(const StepInputs& step, const PlacedModel& placed, int64_t n_deciding);
Bucket largest_bucket(const StepCapacity& capacity);

// The plan of one bucket, and its results.
struct BucketPlan {
  std::unique_ptr<Plan> plan;
  ModelOutputs outputs;
  Graph::TopK best;  // in a bucket with selected logits
};

// The addresses of a run's tensors, looked up when a plan is bound.
class TensorMemory {
 public:
  virtual ~TensorMemory() = default;
  virtual BufferPlace weight(const Weight& weight, int device) = 0;  // on a device with its own memory
  virtual CacheRef cache(const CacheDesc& desc) const = 0;
};

// `memory` may be null if the plan is never bound; otherwise it must outlive the plan, as must `placed`.
BucketPlan make_plan(const PlacedModel& placed, const Bucket& bucket, TensorMemory* memory);

}  // namespace infer
