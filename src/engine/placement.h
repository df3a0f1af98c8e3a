// Which device each part of a model goes to: a function of the model, the user's options and the free memory of the
// devices. Nothing is allocated.
//
// Parts are offloaded in this order: output, last layer, ..., first layer, embedding. A device is named by its index in
// the DeviceSet, of which [0] is the CPU.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/engine/device_set.h"
#include "src/model/model.h"

namespace infer {

inline constexpr int kAllLayers = -1;
inline constexpr int kAutoLayers = -2;  // as many as fit

// Puts the matrices whose names match on one device, whatever layer they belong to. Vectors stay with their layer.
struct TensorRule {
  std::string text;  // as the user gave it
  std::function<bool(const std::string& name)> matches;
  std::string device;
};

struct PlacementOptions {
  int n_gpu_layers = kAllLayers;     // parts to offload, the output counts as one; or kAllLayers, kAutoLayers
  std::vector<double> tensor_split;  // shares of the devices that take layers, in their order; empty: by free memory
  std::vector<TensorRule> tensor_rules;  // the first that matches wins
  int n_cpu_moe = 0;                     // expert weights of the first N layers stay on the CPU
};

// Consecutive layers on one device, both ends included.
struct LayerRange {
  int device = 0;
  int first = 0, last = 0;
};

struct Placement {
  std::vector<int> layers;  // device of each
  int input = 0, output = 0;
  std::unordered_map<const Weight*, int> weights;  // device of each weight of the model; see place_model()

  int of_layer(int layer) const;  // also kInputLayer and kOutputLayer
  int of_weight(const Weight& weight) const { return weights.at(&weight); }
  std::vector<LayerRange> ranges() const;
};

// Parts that can be offloaded: the layers, the output and the embedding.
inline int placeable_parts(int n_layer) { return n_layer + 2; }

// Layers and ends without weights: the last `parts` parts go to `devices`, consecutive ones to each, in proportion to
// `shares`; the rest stays on the CPU. The embedding is a row lookup and moves last, to the device of the first layer.
// REQUIRES as many shares as devices, none negative, one positive; 0 <= parts <= placeable_parts(n_layer).
Placement place_parts(int n_layer, int parts, const std::vector<int>& devices, const std::vector<double>& shares);

// The device of a weight: that of the first rule that matches, the CPU for experts that stay there, else its layer's.
// `device_of` gives the index of a rule's device.
int place_weight(const ModelWeight& weight, int layer, const Placement& placement, const PlacementOptions& options,
                 const std::function<int(const std::string& device)>& device_of);

// All layers and weights of a model. REQUIRES n_gpu_layers other than kAutoLayers. Throws Error(kInvalidArgument) for a
// tensor split of another length than the list of devices, and for a tensor rule that names no device of the set or
// matches no matrix of the model.
Placement place_model(const Model& model, const DeviceSet& set, const PlacementOptions& options);

}  // namespace infer
