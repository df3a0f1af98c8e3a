#include "src/engine/roofline.h"

#include <vector>

namespace infer {
namespace {

// The share of a weight that one token reads.
double share_in_use(const Model& model, const ModelWeight& weight) {
  if (weight.role != WeightRole::kExpert) return 1;
  return static_cast<double>(model.config().routing.n_used) / static_cast<double>(weight.desc.shape[0]);
}

// Per device. The embedding is a lookup, so it is not counted.
std::vector<double> bytes_by_device(const PlacedModel& placed) {
  std::vector<double> bytes(placed.devices().size(), 0);
  for (const int layer : placed.model().all_layers()) {
    if (layer == kInputLayer) continue;
    for (const ModelWeight* weight : placed.model().weights_of_layer(layer)) {
      bytes[static_cast<size_t>(placed.placement().of_weight(*weight))] +=
          share_in_use(placed.model(), *weight) * static_cast<double>(weight->desc.bytes());
    }
  }
  return bytes;
}

Operations operations_of(const Model& model, int layer) {
  Operations sum;
  for (const ModelWeight* weight : model.weights_of_layer(layer)) {
    const Shape& shape = weight->desc.shape;
    if (shape.rank < 2) continue;
    const bool floats = traits(weight->desc.type).activation == ActivationFormat::kF32;
    (floats ? sum.floats : sum.quantized) += 2 * share_in_use(model, *weight) * static_cast<double>(shape.elements());
  }
  return sum;
}

// The combined rate of devices that work one after another, each on its share; 0 if a rate is unknown.
double combined_rate(const std::vector<double>& shares, const std::vector<double>& rates) {
  double all = 0, seconds = 0;
  for (const double share : shares) all += share;
  for (size_t d = 0; d < shares.size(); ++d) {
    if (!(shares[d] > 0)) continue;
    if (!(rates[d] > 0)) return 0;
    seconds += shares[d] / all / rates[d];
  }
  return seconds > 0 ? 1 / seconds : 0;
}

}  // namespace

uint64_t bytes_per_token(const PlacedModel& placed) {
  double sum = 0;
  for (const double bytes : bytes_by_device(placed)) sum += bytes;
  return static_cast<uint64_t>(sum);
}

uint64_t cache_bytes_per_token(const PlacedModel& placed) {
  uint64_t block = 0;
  for (int layer = 0; layer < placed.model().n_layer(); ++layer) {
    for (const LayerCache& cache : placed.caches(layer)) block += cache.is_state() ? 0 : cache.block_bytes;
  }
  return block / kBlockTokens;
}

Operations operations_per_token(const Model& model) {
  Operations sum;
  for (int layer = 0; layer < model.n_layer(); ++layer) {
    const Operations of_layer = operations_of(model, layer);
    sum.quantized += of_layer.quantized;
    sum.floats += of_layer.floats;
  }
  return sum;
}

Operations operations_of_head(const Model& model) { return operations_of(model, kOutputLayer); }

MachineLimits measure_limits(const PlacedModel& placed) {
  const std::vector<double> shares = bytes_by_device(placed);
  std::vector<double> read, int8, floats;
  for (size_t d = 0; d < shares.size(); ++d) {
    const MachineLimits limits = shares[d] > 0 ? placed.devices()[d]->measure_limits() : MachineLimits{};
    read.push_back(limits.read_bytes);
    int8.push_back(limits.int8_operations);
    floats.push_back(limits.float_operations);
  }
  return {combined_rate(shares, read), combined_rate(shares, int8), combined_rate(shares, floats)};
}

double read_bandwidth(const PlacedModel& placed) {
  const std::vector<double> shares = bytes_by_device(placed);
  std::vector<double> rates;
  for (size_t d = 0; d < shares.size(); ++d) {
    rates.push_back(shares[d] > 0 ? placed.devices()[d]->read_bandwidth() : 0);
  }
  return combined_rate(shares, rates);
}

}  // namespace infer
