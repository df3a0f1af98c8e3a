#include "tools/imatrix/collector.h"

namespace infer {

void ImportanceCollector::add(const ProductInput& input) {
  const TensorDesc& weight = input.weight.desc;
  const size_t n = static_cast<size_t>(input.row_size);
  ImportanceSums::Entry& entry = sums_.entries[input.weight.name];
  if (entry.counts.empty()) {
    entry.counts.resize(input.experts.empty() ? 1 : static_cast<size_t>(weight.shape[0]));
    entry.sums.resize(entry.counts.size() * n);
  }
  const auto add_row = [&](size_t matrix, const float* row) {
    double* sums = entry.sums.data() + matrix * n;
    for (size_t i = 0; i < n; ++i) sums[i] += static_cast<double>(row[i]) * row[i];
    ++entry.counts[matrix];
  };
  if (input.experts.empty()) {
    for (size_t r = 0; r < input.values.size() / n; ++r) add_row(0, input.values.data() + r * n);
    return;
  }
  for (size_t pair = 0; pair < input.experts.size(); ++pair) {
    const size_t row = input.row_per_expert() ? pair : pair / static_cast<size_t>(input.n_used);
    add_row(static_cast<size_t>(input.experts[pair]), input.values.data() + row * n);
  }
}

}  // namespace infer
