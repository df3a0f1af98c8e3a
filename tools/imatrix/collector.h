// Gathers an importance matrix: for every weight matrix, the sum of squares of each column of what it is multiplied
// with, and of how many rows. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "ggml-like/plan.h"

namespace infer {

class ImportanceCollector {
 public:
  void add(const ProductInput& input);

  struct Entry {
    std::vector<double> sums;     // [n_matrices, row_size]; one matrix per expert
    std::vector<int64_t> counts;  // [n_matrices]: rows that were added up
  };
  const std::map<std::string, Entry>& entries() const { return entries_; }

  // Writes a GGUF file of the kind that llama-imatrix writes: general.type "imatrix", per weight the tensors
  // NAME.in_sum2 [n_matrices, row_size] and NAME.counts [n_matrices, 1], both F32. Throws Error(kIo).
  void write(const std::filesystem::path& path, const std::string& dataset, int n_chunks, int64_t chunk_size) const;

 private:
  std::map<std::string, Entry> entries_;
};

}  // namespace infer
