// Decides which device holds each part of a model: a function of the model, the user's options and the devices' free
// memory. Allocates nothing.
//
// Parts are offloaded in this order: output, last layer, ..., first layer, embedding. A device is identified by its
// index in the DeviceSet, where [0] is the CPU.
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

// Places the matrices with matching names on one device, whatever their layer. Vectors stay with their layer.
struct TensorRule {
  std::string text;  // as the user wrote it, with the flag
  std::function<bool(const std::string& name)> matches;
  std::string device;
};

struct PlacementOptions {
  int n_gpu_layers = kAllLayers;         // parts to offload, counting the output as one; or kAllLayers, kAutoLayers
  std::vector<double> tensor_split;      // shares of the devices that hold layers, in order; empty: by free memory
  std::vector<TensorRule> tensor_rules;  // the first match wins
  int n_cpu_moe = 0;                     // the first N layers keep their expert weights on the CPU
};

// Consecutive layers on one device, both ends included.
struct LayerRange {
  int device = 0;
  int first = 0, last = 0;
};

struct Placement {
  std::vector<int> layers;  // device of each
  int input = 0, output = 0;
  std::unordered_map<const Weight*, int> weights;  // device of each weight; see place_model()

  int of_layer(int layer) const;  // also kInputLayer and kOutputLayer
  int of_weight(const Weight& weight) const { return weights.at(&weight); }
  std::vector<LayerRange> ranges() const;
};

// The parts that can be offloaded: the layers, the output and the embedding.
inline int placeable_parts(int n_layer) { return n_layer + 2; }

// Places layers and both ends, but no weights. The last `parts` parts go to `devices`, consecutive ones to each, in
// proportion to `shares`; the rest stays on the CPU. The embedding, a row lookup, moves last, with the first layer.
// REQUIRES: as many shares as devices, none negative, one positive; 0 <= parts <= placeable_parts(n_layer).
Placement place_parts(int n_layer, int parts, const std::vector<int>& devices, const std::vector<double>& shares);

// The device of a weight: that of the first matching rule, else the CPU for experts that stay there, else its layer's.
// `device_of` maps a rule's device to its index.
int place_weight(const ModelWeight& weight, int layer, const Placement& placement, const PlacementOptions& options,
                 const std::function<int(const std::string& device)>& device_of);

// Places all layers and weights of a model. REQUIRES: n_gpu_layers is not kAutoLayers. Throws Error(kInvalidArgument)
// if the tensor split and the list of devices differ in length, or if a tensor rule names no device of the set or
// matches no matrix of the model.
Placement place_model(const Model& model, const DeviceSet& set, const PlacementOptions& options);

}  // namespace infer
