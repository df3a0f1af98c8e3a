#include "tools/quantize/importance.h"

#include "tools/imatrix/importance_sums.h"

namespace infer {

const Importance::Entry* Importance::find(std::string_view tensor) const {
  const auto at = entries_.find(tensor);
  return at == entries_.end() ? nullptr : &at->second;
}

Importance Importance::load(const std::filesystem::path& path) {
  const ImportanceSums sums = ImportanceSums::read(path);
  Importance result;
  result.n_chunks_ = sums.n_chunks;
  if (!sums.datasets.empty()) result.dataset_ = sums.datasets.front();
  for (const auto& [name, entry] : sums.entries) {
    std::vector<float>& weights = result.entries_[name].weights;
    weights.resize(entry.sums.size());
    const size_t row = entry.sums.size() / entry.counts.size();
    for (size_t i = 0; i < weights.size(); ++i) {
      // An expert that received no token: all columns get the same weight.
      const double count = entry.counts[i / row];
      weights[i] = count > 0 ? static_cast<float>(entry.sums[i] / count) : 1;
    }
  }
  return result;
}

}  // namespace infer
