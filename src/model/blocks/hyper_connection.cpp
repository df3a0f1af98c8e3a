#include "src/model/blocks/hyper_connection.h"

#include <cstring>

#include "ggml-like/message.h"
#include "src/model/blocks/altup.h"

namespace infer {
namespace {

HyperWeights declare(WeightSet& weights, int layer, std::string_view name, int64_t n_scores, int64_t n_in,
                     int n_scale) {
  const WeightRole role = WeightRole::kResidual;
  HyperWeights w;
  w.scores.weight = weights.require(layer, role, concat(name, "_fn.weight"), {n_scores, n_in});
  w.base = weights.require(layer, role, concat(name, "_base.weight"), {n_scores});
  const Weight* scales = weights.require(layer, role, concat(name, "_scale.weight"), {n_scale});
  w.scales.assign(static_cast<size_t>(n_scale), 1.0f);  // for files opened without data
  if (scales->host) std::memcpy(w.scales.data(), scales->host, w.scales.size() * sizeof(float));
  return w;
}

// Scores of the streams [n_rows, n_stream, n_embd], before their scales: [n_rows, n_scores].
ValueId raw_scores(Graph& graph, ValueId streams, const HyperWeights& w, float norm_eps) {
  const Shape& shape = graph.value(streams).desc.shape;
  const ValueId rows = graph.reshape(streams, {shape[0], shape.row_elements()});
  return linear(graph, graph.rms_norm(rows, nullptr, norm_eps), w.scores);
}

// The sum of the streams weighted by sigmoid(scores) + eps. scores [n_rows, n_stream] -> [n_rows, n_embd].
ValueId weighted_streams(Graph& graph, ValueId streams, ValueId scores, float eps) {
  const Shape shape = graph.value(streams).desc.shape;
  const ValueId gates = graph.unary(scores, UnaryKind::kSigmoid);
  const ValueId weights = graph.add(gates, graph.clamp(gates, eps, eps));
  const ValueId mixed = graph.mix_streams(streams, graph.reshape(weights, {shape[0], 1, shape[1]}));
  return graph.reshape(mixed, {shape[0], shape[2]});
}

}  // namespace

HyperWeights declare_hyper_connection(WeightSet& weights, const HyperConfig& config, int layer, std::string_view name,
                                      int64_t n_embd) {
  const int64_t n = config.n_stream;
  return declare(weights, layer, name, (2 + n) * n, n * n_embd, 3);
}

HyperWeights declare_hyper_output(WeightSet& weights, const HyperConfig& config, std::string_view name,
                                  int64_t n_embd) {
  return declare(weights, kOutputLayer, name, config.n_stream, config.n_stream * n_embd, 1);
}

ValueId make_equal_streams(Graph& graph, ValueId x, int n_stream) {
  const Shape shape = graph.value(x).desc.shape;
  const ValueId single = graph.reshape(x, {shape[0], 1, shape[1]});
  ValueId streams = single;
  for (int i = 1; i < n_stream; ++i) streams = graph.concat_columns(streams, single);
  return graph.reshape(streams, {shape[0], n_stream, shape[1]});
}

HyperInput read_streams(Graph& graph, ValueId streams, const HyperWeights& w, const HyperConfig& config,
                        float norm_eps) {
  const int64_t rows = graph.value(streams).desc.shape[0], n = config.n_stream;
  const ValueId raw = raw_scores(graph, streams, w, norm_eps);  // [n_rows, (2 + n) * n]
  const auto scaled = [&](int part, int64_t count) {
    const ValueId scores = graph.slice_columns(raw, part * n, count);
    return graph.reshape(graph.scale(scores, w.scales[static_cast<size_t>(part)]), {rows, 1, count});
  };
  const ValueId all = graph.concat_columns(graph.concat_columns(scaled(0, n), scaled(1, n)), scaled(2, n * n));
  const ValueId scores = graph.add(graph.reshape(all, {rows, (2 + n) * n}), graph.weight(*w.base));
  const ValueId write = graph.unary(graph.slice_columns(scores, n, n), UnaryKind::kSigmoid);
  const ValueId mix = graph.reshape(graph.slice_columns(scores, 2 * n, n * n), {rows, n, n});
  return {.x = weighted_streams(graph, streams, graph.slice_columns(scores, 0, n), config.eps),
          .write = graph.reshape(graph.scale(write, 2), {rows, n, 1}),
          .mix = graph.sinkhorn(mix, {config.sinkhorn_iterations, config.eps})};
}

ValueId write_streams(Graph& graph, ValueId streams, ValueId y, const HyperInput& input) {
  const Shape shape = graph.value(streams).desc.shape;
  const ValueId added = graph.mul(make_equal_streams(graph, y, static_cast<int>(shape[1])), input.write);
  return graph.add(graph.mix_streams(streams, input.mix), added);
}

ValueId merge_hyper_streams(Graph& graph, ValueId streams, const HyperWeights& w, const HyperConfig& config,
                            float norm_eps) {
  const ValueId scores = graph.scale(raw_scores(graph, streams, w, norm_eps), w.scales[0]);
  return weighted_streams(graph, streams, graph.add(scores, graph.weight(*w.base)), config.eps);
}

void select_hyper_rows(Graph& graph, HyperInput& input) {
  input.write = select_stream_rows(graph, input.write);
  input.mix = select_stream_rows(graph, input.mix);
}

}  // namespace infer
