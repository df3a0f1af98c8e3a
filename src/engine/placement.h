// Which device each part of a model goes to. Pure functions of the user's wishes and of numbers: no device is asked and
// nothing is allocated.
//
// The order in which parts move to devices: output, last layer, ..., first layer, embedding. A device is named by its
// index in the plan's devices, of which [0] is the CPU.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "src/model/model_weight.h"

namespace infer {

inline constexpr int kAllLayers = -1;
inline constexpr int kAutoLayers = -2;  // as many as fit

// Tensors whose names match lie on a device of their own. Matrices only: a vector goes where it is used.
struct TensorRule {
  std::string text;  // as the user gave it
  std::function<bool(const std::string& name)> matches;
  std::string device;
};

struct PlacementOptions {
  int n_gpu_layers = kAllLayers;     // parts that move, the output counts as one; kAllLayers and kAutoLayers too
  std::vector<double> tensor_split;  // shares of the devices that take layers, in their order; empty: by free memory
  std::vector<TensorRule> tensor_rules;  // the first that matches counts
  int n_cpu_moe = 0;                     // expert weights of the first N layers stay on the CPU
};

// Layers one after another on one device.
struct LayerRange {
  int device = 0;
  int first = 0, last = 0;
};

struct Placement {
  std::vector<int> layers;  // device of each
  int input = 0, output = 0;

  int of_layer(int layer) const;  // kInputLayer and kOutputLayer too
  std::vector<LayerRange> ranges() const;
};

// Parts that can move: the layers, the output and the embedding.
inline int placeable_parts(int n_layer) { return n_layer + 2; }

// The last `parts` parts go to `devices`, consecutive ones to each, in proportion to `shares`; the rest stays on the
// CPU. The embedding is a row look-up and moves last, to the device of the first layer. REQUIRES as many shares as
// devices, none negative, one positive; 0 <= parts <= placeable_parts(n_layer).
Placement place_parts(int n_layer, int parts, const std::vector<int>& devices, const std::vector<double>& shares);

// The device of a weight: that of the first rule that matches, the CPU for experts that stay there, else its layer's.
// `device_of` gives the index of a rule's device.
int place_weight(const ModelWeight& weight, int layer, const Placement& placement, const PlacementOptions& options,
                 const std::function<int(const std::string& device)>& device_of);

}  // namespace infer
