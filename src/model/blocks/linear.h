// Linear layers and norms, the basis of the other blocks.
#pragma once

#include <string_view>

#include "src/model/weights.h"

namespace infer {

struct Linear {
  const Weight* weight = nullptr;  // [n_out, n_in]
  const Weight* bias = nullptr;    // [n_out], null if the file has none
};

// Declares NAME.weight, which must exist, and NAME.bias, which is optional.
Linear declare_linear(WeightSet& weights, int layer, WeightRole role, std::string_view name, int64_t n_out,
                      int64_t n_in);
// Declares NAME.weight: [width].
const Weight* declare_norm(WeightSet& weights, int layer, std::string_view name, int64_t width);

// The value of the one-element tensor NAME; 1 if the file has none, or was opened without data.
float declare_factor(WeightSet& weights, int layer, WeightRole role, std::string_view name);

struct LayerNorm {
  const Weight* weight = nullptr;  // [width]
  const Weight* bias = nullptr;    // [width], null if the file has none
};

// Declares NAME.weight, which must exist, and NAME.bias, which is optional.
LayerNorm declare_layer_norm(WeightSet& weights, int layer, std::string_view name, int64_t width);

ValueId layer_norm(Graph& graph, ValueId x, const LayerNorm& w, float eps);
// An RMS norm with these weights: the mean is not subtracted.
ValueId rms_norm(Graph& graph, ValueId x, const LayerNorm& w, float eps);

// x [n_rows, n_in] -> [n_rows, n_out].
ValueId linear(Graph& graph, ValueId x, const Linear& w);

// Of every group of `width` columns of x [n_rows, b * width], takes `count` from `begin` on -> [n_rows, b * count].
ValueId slice_groups(Graph& graph, ValueId x, int64_t width, int64_t begin, int64_t count);

// Names a value "blk.LAYER.PART" for observers and returns it.
ValueId named(Graph& graph, int layer, std::string_view part, ValueId x);

}  // namespace infer
