#include "src/engine/placement.h"

#include <algorithm>
#include <numeric>

#include "ggml-like/error.h"

namespace infer {
namespace {

std::vector<double> shares_of_devices(const DeviceSet& set, const PlacementOptions& options) {
  std::vector<double> shares = options.tensor_split;
  if (shares.empty()) {
    for (const int d : set.of_layers) {
      shares.push_back(static_cast<double>(set.devices[static_cast<size_t>(d)]->memory().free) + 1);
    }
  }
  if (shares.size() != set.of_layers.size()) {
    throw Error(ErrorCode::kInvalidArgument,
                concat("--tensor-split needs one share for each of the ", set.of_layers.size(),
                       " devices that take layers; it has ", shares.size(), "."));
  }
  return shares;
}

void check_rule_devices(const DeviceSet& set, const std::vector<TensorRule>& rules) {
  for (const TensorRule& rule : rules) {
    if (set.find(rule.device) >= 0) continue;
    throw Error(ErrorCode::kInvalidArgument,
                concat(rule.text, ": there is no device ", rule.device, " in this run. Use one of ", set.names(), "."));
  }
}

// A rule that matches nothing is probably a typo.
void check_rules_match(const Model& model, const std::vector<TensorRule>& rules) {
  for (const TensorRule& rule : rules) {
    bool matches = false;
    for (const int layer : model.all_layers()) {
      for (const ModelWeight* weight : model.weights_of_layer(layer)) {
        matches = matches || (weight->desc.shape.rank >= 2 && rule.matches(weight->name));
      }
    }
    if (matches) continue;
    throw Error(ErrorCode::kInvalidArgument, concat(rule.text,
                                                    ": no matrix of the model matches. --tensor-device must match the "
                                                    "whole name, -ot a part of it; infer inspect --tensors "
                                                    "lists the names."));
  }
}

}  // namespace

int Placement::of_layer(int layer) const {
  if (layer == kInputLayer) return input;
  if (layer == kOutputLayer) return output;
  return layers[static_cast<size_t>(layer)];
}

std::vector<LayerRange> Placement::ranges() const {
  std::vector<LayerRange> ranges;
  for (int layer = 0; layer < static_cast<int>(layers.size()); ++layer) {
    const int device = of_layer(layer);
    if (ranges.empty() || ranges.back().device != device) ranges.push_back({device, layer, layer});
    ranges.back().last = layer;
  }
  return ranges;
}

Placement place_parts(int n_layer, int parts, const std::vector<int>& devices, const std::vector<double>& shares) {
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  CHECK_INTERNAL(parts >= 0 && parts <= placeable_parts(n_layer) && shares.size() == devices.size() && all > 0);
  Placement placement;
  placement.layers.assign(static_cast<size_t>(n_layer), 0);
  // Layers and output are numbered from 0; each goes to the device whose share covers its midpoint.
  const int n = n_layer + 1, moved = std::min(parts, n);
  for (int i = 0; i < moved; ++i) {
    const double middle = (i + 0.5) / moved * all;
    size_t d = 0;
    for (double sum = shares[0]; d + 1 < devices.size() && sum <= middle; sum += shares[d]) ++d;
    const int part = n - moved + i;
    (part == n_layer ? placement.output : placement.layers[static_cast<size_t>(part)]) = devices[d];
  }
  if (parts > n) placement.input = n_layer > 0 ? placement.layers[0] : placement.output;
  return placement;
}

int place_weight(const ModelWeight& weight, int layer, const Placement& placement, const PlacementOptions& options,
                 const std::function<int(const std::string& device)>& device_of) {
  if (weight.desc.shape.rank > 1) {
    for (const TensorRule& rule : options.tensor_rules) {
      if (rule.matches(weight.name)) return device_of(rule.device);
    }
    if (weight.role == WeightRole::kExpert && layer >= 0 && layer < options.n_cpu_moe) return 0;
  }
  return placement.of_layer(layer);
}

Placement place_model(const Model& model, const DeviceSet& set, const PlacementOptions& options) {
  const std::vector<double> shares = shares_of_devices(set, options);
  check_rule_devices(set, options.tensor_rules);
  check_rules_match(model, options.tensor_rules);
  const int most = placeable_parts(model.n_layer());
  const int parts = options.n_gpu_layers == kAllLayers ? most : std::min(options.n_gpu_layers, most);
  Placement placement = place_parts(model.n_layer(), parts, set.of_layers, shares);
  for (const int layer : model.all_layers()) {
    for (const ModelWeight* weight : model.weights_of_layer(layer)) {
      placement.weights[weight] =
          place_weight(*weight, layer, placement, options, [&](const std::string& device) { return set.find(device); });
    }
  }
  return placement;
}

}  // namespace infer
