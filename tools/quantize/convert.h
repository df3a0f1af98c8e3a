// Converts slices of a tensor to a new type: reads from the model file, converts, encodes, checks, and optionally
// measures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "ggml-like/data_type.h"
#include "ggml-like/gguf.h"
#include "tools/quantize/importance.h"

namespace infer {

// The parts of a model, open for reading. Reads are positional, so any number of threads may share it; nothing is
// mapped, so memory use does not grow with the bytes read.
class ModelParts {
 public:
  explicit ModelParts(const std::vector<std::filesystem::path>& paths);
  ~ModelParts();
  ModelParts(const ModelParts&) = delete;
  ModelParts& operator=(const ModelParts&) = delete;

  // Throws Error(kIo) if reading fails or the file has become shorter.
  void read(uint32_t part, uint64_t offset, std::byte* to, size_t n) const;

 private:
  std::vector<std::filesystem::path> paths_;
  std::vector<int> descriptors_;
};

// The error caused by encoding, summed over values.
struct ErrorSums {
  double error = 0, square = 0;                    // of (x - y)^2, of x^2
  double weighted_error = 0, weighted_square = 0;  // the same, weighted by importance
  double largest = 0;                              // |x - y|
  int64_t n = 0;

  void add(const ErrorSums& other);
  double relative() const;           // root of error / square
  double weighted_relative() const;  // 0 without importance
};

// The conversion of one tensor from its old type to the new.
struct Conversion {
  const GgufTensor* tensor;
  DataType type;
  const Importance::Entry* importance = nullptr;
};

inline constexpr int64_t kSliceValues = int64_t{1} << 17;  // a multiple of every block

struct Slice {
  std::vector<std::byte> bytes;
  ErrorSums errors;    // only when measured
  double seconds = 0;  // CPU seconds for converting and encoding
};

// Converts the values start .. start + kSliceValues, or up to the tensor's end. Throws Error(kInvalidFile) naming the
// tensor if a value is not finite, or not representable in the new type.
void convert_slice(const ModelParts& parts, const Conversion& conversion, int64_t start, bool measure, Slice& slice);

}  // namespace infer
