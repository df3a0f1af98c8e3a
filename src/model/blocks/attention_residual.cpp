#include "src/model/blocks/attention_residual.h"

namespace infer {
namespace {

// Concatenates vectors [n_rows, n]: [n_rows, 1, sum of n].
ValueId joined(Graph& graph, const std::vector<ValueId>& vectors) {
  const auto single = [&](ValueId x) {
    const Shape& shape = graph.value(x).desc.shape;
    return graph.reshape(x, {shape[0], 1, shape[1]});
  };
  ValueId all = single(vectors[0]);
  for (size_t i = 1; i < vectors.size(); ++i) all = graph.concat_columns(all, single(vectors[i]));
  return all;
}

}  // namespace

void bank_residual(Graph& graph, ResidualBank& bank, ValueId x, float eps) {
  bank.values.push_back(x);
  bank.normalized.push_back(graph.rms_norm(x, nullptr, eps));
}

void select_bank_rows(Graph& graph, ResidualBank& bank) {
  for (ValueId& x : bank.values) x = graph.select_rows(x);
  for (ValueId& x : bank.normalized) x = graph.select_rows(x);
}

ValueId attend_to_bank(Graph& graph, ValueId x, const ResidualBank& bank, const Weight& score, float eps) {
  if (bank.values.empty()) return x;
  std::vector<ValueId> values = bank.values, scores;
  values.push_back(x);
  for (const ValueId normalized : bank.normalized) scores.push_back(graph.matmul(normalized, score));
  scores.push_back(graph.matmul(graph.rms_norm(x, nullptr, eps), score));
  const Shape shape = graph.value(x).desc.shape;
  const ValueId weights = graph.softmax(joined(graph, scores));  // [n_rows, 1, n_values]
  const ValueId streams =
      graph.reshape(joined(graph, values), {shape[0], static_cast<int64_t>(values.size()), shape[1]});
  return graph.reshape(graph.mix_streams(streams, weights), shape);
}

}  // namespace infer
