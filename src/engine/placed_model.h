// A model whose parts have their places, and the plans of its steps. Nothing is allocated on a device here, so that
// `infer plan` and -ngl auto ask exactly what a run would do.
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

struct RunnerOptions {
  std::shared_ptr<DeviceSet> devices;
  PlacementOptions placement;                    // REQUIRES n_gpu_layers other than kAutoLayers
  std::optional<DataType> key_type, value_type;  // of the KV cache; unset: that of the first device with layers
  std::vector<int32_t> n_blocks;                 // KV blocks of each cache group of the model
  StepCapacity capacity;                         // of the steps that will be run
  bool strict_offload = false;                   // see PlanOptions::strict
  std::vector<Observer> observers;
  std::function<void(const ProductInput& input)> product_observer;
  Profile* profile = nullptr;  // see PlanOptions
};

// Fixed for the life of a run. Plans and memory refer to it, so it neither moves nor dies before them.
class PlacedModel {
 public:
  // Throws what place_model() throws, and Error(kInvalidArgument) for cache types that the model's heads do not fit.
  PlacedModel(std::shared_ptr<const Model> model, RunnerOptions options);
  PlacedModel(const PlacedModel&) = delete;
  PlacedModel& operator=(const PlacedModel&) = delete;

  const Model& model() const { return *model_; }
  const RunnerOptions& options() const { return options_; }
  const Placement& placement() const { return placement_; }
  CacheTypes cache_types() const { return cache_types_; }
  const std::vector<Device*>& devices() const { return devices_; }  // [0] is the CPU
  Device& device_of_layer(int layer) const { return *devices_[static_cast<size_t>(placement_.of_layer(layer))]; }

  size_t cache_block_bytes(int layer) const;  // on the layer's device
  int64_t cache_blocks(int layer) const;      // of the layer's group

 private:
  const std::shared_ptr<const Model> model_;
  const RunnerOptions options_;
  const std::vector<Device*> devices_;
  const Placement placement_;
  const CacheTypes cache_types_;
};

// The rows a plan is made for, each rounded up by bucket_size(), and what comes back of each row of logits: the best
// `selected` of them and their log-sum-exp, or with 0 all.
struct Bucket {
  int tokens = 0, outputs = 0, logits = 0;
  int selected = 0;
  auto operator<=>(const Bucket&) const = default;
};
inline constexpr int kMostSelected = 64;
// For steps of which the best `n_deciding` logits of each row are enough; 0: all are needed.
Bucket bucket_of(const StepInputs& step, const PlacedModel& placed, int64_t n_deciding);
Bucket largest_bucket(const StepCapacity& capacity);

// The plan of one bucket, and its results.
struct BucketPlan {
  std::unique_ptr<Plan> plan;
  ModelOutputs outputs;
  Graph::TopK best;  // in a bucket with selected logits
};

// Where the tensors of a run lie; asked when a plan is bound.
class TensorMemory {
 public:
  virtual ~TensorMemory() = default;
  virtual BufferPlace weight(const Weight& weight, int device) = 0;  // on a device that is no host device
  virtual CacheRef cache(int layer) const = 0;
};

// `memory` may be null where the plan is never bound; else it outlives the plan, as `placed` does.
BucketPlan make_plan(const PlacedModel& placed, const Bucket& bucket, TensorMemory* memory);

}  // namespace infer
