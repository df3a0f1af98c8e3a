#include "tools/imatrix/collector.h"

#include "ggml-like/gguf.h"

namespace infer {

void ImportanceCollector::add(const ProductInput& input) {
  const TensorDesc& weight = input.weight.desc;
  const size_t n = static_cast<size_t>(input.row_size);
  Entry& entry = entries_[input.weight.name];
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

void ImportanceCollector::write(const std::filesystem::path& path, const std::string& dataset, int n_chunks,
                                int64_t chunk_size) const {
  std::vector<GgufWriter::TensorInfo> tensors;
  for (const auto& [name, entry] : entries_) {
    const int64_t n_matrices = static_cast<int64_t>(entry.counts.size());
    const int64_t row = static_cast<int64_t>(entry.sums.size()) / n_matrices;
    const auto shape = [&](int64_t width) {
      return n_matrices == 1 ? std::vector<int64_t>{width} : std::vector<int64_t>{n_matrices, width};
    };
    tensors.push_back({name + ".in_sum2", DataType::kF32, shape(row)});
    tensors.push_back({name + ".counts", DataType::kF32, shape(1)});
  }
  GgufWriter writer(path,
                    {{"general.type", GgufValue::of_string("imatrix")},
                     {"imatrix.datasets", GgufValue::of_strings({dataset})},
                     {"imatrix.chunk_count", GgufValue::of_uint32(static_cast<uint32_t>(n_chunks))},
                     {"imatrix.chunk_size", GgufValue::of_uint32(static_cast<uint32_t>(chunk_size))}},
                    tensors);
  for (const auto& [name, entry] : entries_) {
    const std::vector<float> sums(entry.sums.begin(), entry.sums.end());
    const std::vector<float> counts(entry.counts.begin(), entry.counts.end());
    writer.write(std::as_bytes(std::span(sums)));
    writer.write(std::as_bytes(std::span(counts)));
  }
  writer.finish();
}

}  // namespace infer
