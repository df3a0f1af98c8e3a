// What importance matrices are made of: for every weight matrix, the sum of squares of each column of what it was
// multiplied with, and how many rows went into it. Read from files, added up, written. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "ggml-like/gguf.h"

namespace infer {

struct ImportanceSums {
  struct Entry {
    std::vector<double> sums;    // [n_matrices, row_size]; one matrix per expert
    std::vector<double> counts;  // [n_matrices]: rows added up; of experts a file does not tell apart, one for all
  };

  std::map<std::string, Entry, std::less<>> entries;  // by the weight's name
  std::vector<std::string> datasets;                  // the texts
  int64_t n_chunks = 0, chunk_size = 0;               // tokens; 0: not known

  // GGUF files of that kind (`infer imatrix`, llama-imatrix) and the older binary form (.dat), which counts calls
  // instead of rows: one call is taken for `rows_per_call`. Throws Error(kInvalidFile) for what is neither, or damaged,
  // Error(kIo).
  static ImportanceSums read(const std::filesystem::path& path, int64_t rows_per_call = 1);

  // Adds sums and counts; texts are listed once, chunks counted in `chunk_size` of this one, or of the first that has
  // one. Throws Error(kInvalidFile) naming `where` when a tensor has another size.
  void add(const ImportanceSums& other, const std::string& where);

  // Writes a GGUF file of the kind that llama-imatrix writes: general.type "imatrix", per weight the tensors
  // NAME.in_sum2 [n_matrices, row_size] and NAME.counts [n_matrices, 1], both F32. Throws Error(kIo).
  void write(const std::filesystem::path& path) const;
};

// How many sums go with a weight: one per column of each of its matrices.
int64_t importance_size(const GgufTensor& weight);

}  // namespace infer
