// The contents of an importance matrix: for every weight matrix, the sum of squares of each input column, and the
// number of rows summed. Read from files, added up, written. One thread.
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
    std::vector<double> counts;  // [n_matrices]: rows summed; a single count if the file does not separate the experts
  };

  std::map<std::string, Entry, std::less<>> entries;  // by the weight's name
  std::vector<std::string> datasets;                  // names of the texts
  int64_t n_chunks = 0, chunk_size = 0;               // chunk_size in tokens; 0: unknown

  // Reads GGUF importance matrices (`infer imatrix`, llama-imatrix) and the older binary format (.dat). The latter
  // counts calls instead of rows; one call counts as `rows_per_call` rows. Throws Error(kInvalidFile) for a damaged or
  // other file, and Error(kIo).
  static ImportanceSums read(const std::filesystem::path& path, int64_t rows_per_call = 1);

  // Adds sums and counts. Each text is listed once; chunks are converted to this one's `chunk_size`, or to the first
  // known one. Throws Error(kInvalidFile) naming `where` if a tensor's size differs.
  void add(const ImportanceSums& other, const std::string& where);

  // Writes a GGUF file as llama-imatrix does: general.type "imatrix" and, per weight, the F32 tensors NAME.in_sum2
  // [n_matrices, row_size] and NAME.counts [n_matrices, 1]. Throws Error(kIo).
  void write(const std::filesystem::path& path) const;
};

// The number of sums for a weight: one per column of each of its matrices.
int64_t importance_size(const GgufTensor& weight);

}  // namespace infer
