#include "src/model/blocks/gated_streams.h"

#include "ggml-like/message.h"
#include "src/model/blocks/altup.h"

namespace infer {
namespace {

constexpr WeightRole kStreamsRole = WeightRole::kResidual;

}  // namespace

GatedStreamWeights declare_gated_output(WeightSet& weights, std::string_view name, int64_t n_stream, int64_t n_embd,
                                        int64_t rank) {
  const int64_t all = n_stream * n_embd;
  return {
      .norm = declare_norm(weights, kOutputLayer, concat(name, "_norm"), all),
      .down = declare_linear(weights, kOutputLayer, kStreamsRole, concat(name, "_down"), rank, all),
      .up = declare_linear(weights, kOutputLayer, kStreamsRole, concat(name, "_up"), all, rank),
      .write = {},
  };
}

GatedStreamWeights declare_gated_streams(WeightSet& weights, int layer, std::string_view name, int64_t n_stream,
                                         int64_t n_embd, int64_t rank) {
  const int64_t all = n_stream * n_embd;
  return {
      .norm = declare_norm(weights, layer, concat(name, "_norm"), all),
      .down = declare_linear(weights, layer, kStreamsRole, concat(name, "_down"), rank, all),
      .up = declare_linear(weights, layer, kStreamsRole, concat(name, "_up"), all, rank),
      .write = declare_linear(weights, layer, kStreamsRole, concat(name, "_inject"), n_stream, all),
  };
}

ValueId norm_streams(Graph& graph, ValueId streams, const Weight* weight, float eps) {
  const Shape shape = graph.value(streams).desc.shape;
  const ValueId flat = graph.reshape(graph.rms_norm(streams, nullptr, eps), {shape[0], shape.row_elements()});
  return graph.reshape(graph.mul(flat, graph.weight(*weight)), shape);
}

GatedStreamInput read_gated_streams(Graph& graph, ValueId streams, const GatedStreamWeights& w, float eps) {
  const Shape shape = graph.value(streams).desc.shape;
  const float share = 1 / static_cast<float>(shape[1]);
  const ValueId x =
      graph.reshape(norm_streams(graph, streams, w.norm, eps), {shape[0], shape.row_elements()});      // flattened
  const ValueId narrow = graph.unary(graph.scale(linear(graph, x, w.down), share), UnaryKind::kSilu);  // [n_rows, rank]
  const ValueId gated =
      graph.reshape(graph.gated_activation(linear(graph, narrow, w.up), x, UnaryKind::kSigmoid), shape);
  ValueId sum = stream_of(graph, gated, 0);  // [n_rows, n_embd]
  for (int64_t i = 1; i < shape[1]; ++i) sum = graph.add(sum, stream_of(graph, gated, i));
  GatedStreamInput in{graph.scale(sum, share)};
  if (!w.write.weight) return in;
  const ValueId write = graph.unary(graph.scale(linear(graph, x, w.write), share), UnaryKind::kSigmoid);
  in.write = graph.reshape(graph.scale(write, 2), {shape[0], shape[1], 1});
  return in;
}

ValueId write_gated_streams(Graph& graph, ValueId streams, ValueId y, ValueId write) {
  const Shape shape = graph.value(y).desc.shape;
  return graph.add(streams, graph.mix_streams(graph.reshape(y, {shape[0], 1, shape[1]}), write));
}

}  // namespace infer
