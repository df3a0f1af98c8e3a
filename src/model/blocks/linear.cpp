#include "src/model/blocks/linear.h"

#include <cstring>

#include "ggml-like/error.h"

namespace infer {

Linear declare_linear(WeightSet& weights, int layer, WeightRole role, std::string_view name, int64_t n_out,
                      int64_t n_in) {
  return {weights.require(layer, role, concat(name, ".weight"), {n_out, n_in}),
          weights.optional(layer, role, concat(name, ".bias"), {n_out})};
}

const Weight* declare_norm(WeightSet& weights, int layer, std::string_view name, int64_t width) {
  return weights.require(layer, WeightRole::kNorm, concat(name, ".weight"), {width});
}

float declare_factor(WeightSet& weights, int layer, WeightRole role, std::string_view name) {
  const Weight* weight = weights.optional(layer, role, name, {1});
  float value = 1;
  if (weight && weight->host) std::memcpy(&value, weight->host, sizeof value);
  return value;
}

LayerNorm declare_layer_norm(WeightSet& weights, int layer, std::string_view name, int64_t width) {
  return {declare_norm(weights, layer, name, width),
          weights.optional(layer, WeightRole::kNorm, concat(name, ".bias"), {width})};
}

ValueId layer_norm(Graph& graph, ValueId x, const LayerNorm& w, float eps) {
  return graph.layer_norm(x, w.weight, w.bias, eps);
}

ValueId rms_norm(Graph& graph, ValueId x, const LayerNorm& w, float eps) {
  const ValueId y = graph.rms_norm(x, w.weight, eps);
  return w.bias ? graph.add(y, graph.weight(*w.bias)) : y;
}

ValueId linear(Graph& graph, ValueId x, const Linear& w) { return graph.matmul(x, *w.weight, w.bias); }

ValueId slice_groups(Graph& graph, ValueId x, int64_t width, int64_t begin, int64_t count) {
  const Shape& shape = graph.value(x).desc.shape;
  const int64_t rows = shape[0], groups = shape[1] / width;
  const ValueId taken = graph.slice_columns(graph.reshape(x, {rows, groups, width}), begin, count);
  return graph.reshape(taken, {rows, groups * count});
}

ValueId named(Graph& graph, int layer, std::string_view part, ValueId x) {
  return graph.name(x, concat("blk.", layer, ".", part));
}

}  // namespace infer
