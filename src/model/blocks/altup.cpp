#include "src/model/blocks/altup.h"

namespace infer {
namespace {

constexpr WeightRole kAltupRole = WeightRole::kResidual;
constexpr float kNoDivisionByZero = 1e-30f;

// [n_rows, n, d] -> [n_rows, n * d].
ValueId flat(Graph& graph, ValueId streams) {
  const Shape& shape = graph.value(streams).desc.shape;
  return graph.reshape(streams, {shape[0], shape.row_elements()});
}

// x [n_rows, n * d] -> [n_rows, n, d].
ValueId as_streams(Graph& graph, ValueId x, int64_t n) {
  const Shape& shape = graph.value(x).desc.shape;
  return graph.reshape(x, {shape[0], n, shape[1] / n});
}

// x [n_rows, d], each row rescaled to the RMS of the same row of `other`.
ValueId with_length_of(Graph& graph, ValueId x, ValueId other) {
  return graph.mul(graph.rms_norm(x, nullptr, kNoDivisionByZero), graph.rms(other));
}

// Concatenates a and b [n_rows, n, d] along the streams: [n_rows, n of both, d].
ValueId append_streams(Graph& graph, ValueId a, ValueId b) {
  const int64_t n = graph.value(a).desc.shape[1] + graph.value(b).desc.shape[1];
  const ValueId both = graph.concat_columns(as_streams(graph, flat(graph, a), 1), as_streams(graph, flat(graph, b), 1));
  return as_streams(graph, flat(graph, both), n);
}

// x [n_rows, n_embd] -> [n_rows, n_streams], between -1 and 1.
ValueId modalities(Graph& graph, ValueId x, const AltupWeights& w, float eps) {
  const ValueId normalized = graph.rms_norm(x, w.router_norm, eps);
  const float scale = 1 / static_cast<float>(graph.value(x).desc.shape[1]);
  return graph.unary(linear(graph, graph.scale(normalized, scale), w.router), UnaryKind::kTanh);
}

}  // namespace

AltupWeights declare_altup(WeightSet& weights, const ModelConfig& config, int layer, int64_t n_streams) {
  AltupWeights w;
  w.router = declare_linear(weights, layer, kAltupRole, "altup_router", n_streams, config.n_embd);
  w.router_norm = declare_norm(weights, layer, "altup_router_norm", config.n_embd);
  w.predict = declare_linear(weights, layer, kAltupRole, "altup_predict_coef", n_streams * n_streams, n_streams);
  w.correct = declare_linear(weights, layer, kAltupRole, "altup_correct_coef", n_streams, n_streams);
  return w;
}

ValueId stream_of(Graph& graph, ValueId streams, int64_t stream) {
  const int64_t d = graph.value(streams).desc.shape[2];
  return graph.view_columns(flat(graph, streams), stream * d, d);
}

ValueId select_stream_rows(Graph& graph, ValueId streams) {
  const int64_t n = graph.value(streams).desc.shape[1];
  return as_streams(graph, graph.select_rows(flat(graph, streams)), n);
}

ValueId make_streams(Graph& graph, ValueId x, const std::vector<const Weight*>& matrices) {
  ValueId streams = as_streams(graph, x, 1);
  for (const Weight* matrix : matrices) {
    const ValueId other = with_length_of(graph, graph.matmul(x, *matrix), x);
    streams = append_streams(graph, streams, as_streams(graph, other, 1));
  }
  return streams;
}

ValueId merge_streams(Graph& graph, ValueId streams, const std::vector<const Weight*>& matrices) {
  const ValueId first = stream_of(graph, streams, 0);
  ValueId sum = first;
  for (size_t i = 0; i < matrices.size(); ++i) {
    const ValueId other = graph.matmul(stream_of(graph, streams, static_cast<int64_t>(i) + 1), *matrices[i]);
    sum = graph.add(sum, with_length_of(graph, other, first));
  }
  return graph.scale(sum, 1 / static_cast<float>(matrices.size() + 1));
}

ValueId predict_streams(Graph& graph, ValueId streams, const AltupWeights& w, float eps) {
  const int64_t n = graph.value(streams).desc.shape[1];
  const ValueId coefficients = linear(graph, modalities(graph, stream_of(graph, streams, 0), w, eps), w.predict);
  return graph.add(graph.mix_streams(streams, as_streams(graph, coefficients, n)), streams);
}

ValueId correct_streams(Graph& graph, ValueId predicted, ValueId computed, const AltupWeights& w, float eps) {
  const int64_t n = graph.value(predicted).desc.shape[1];
  const ValueId off = graph.add(computed, graph.scale(stream_of(graph, predicted, 0), -1));    // [n_rows, n_embd]
  const ValueId coefficients = linear(graph, modalities(graph, computed, w, eps), w.correct);  // [n_rows, n]
  // Stream i gets (1 + coefficient i) * off.
  const ValueId once = as_streams(graph, off, 1);
  const ValueId corrected = graph.add(predicted, graph.mix_streams(once, as_streams(graph, coefficients, n)));
  return graph.add(corrected, once);
}

ValueId add_to_other_streams(Graph& graph, ValueId streams, ValueId x) {
  const Shape shape = graph.value(streams).desc.shape;
  const int64_t n = shape[1], d = shape[2];
  const ValueId others = as_streams(graph, graph.view_columns(flat(graph, streams), d, (n - 1) * d), n - 1);
  return append_streams(graph, as_streams(graph, stream_of(graph, streams, 0), 1),
                        graph.add(others, as_streams(graph, x, 1)));
}

}  // namespace infer
