// What `infer quantize` will do, computed beforehand: each tensor's new type, the output files, their metadata.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ggml-like/gguf.h"
#include "tools/quantize/convert.h"
#include "tools/quantize/importance.h"
#include "tools/quantize/quantize.h"

namespace infer {

struct OutputFile {
  std::filesystem::path path;
  std::vector<std::pair<std::string, GgufValue>> metadata;
  std::vector<size_t> tensors;  // a range of indices into conversions
};

struct QuantizePlan {
  std::shared_ptr<const GgufFile> input;  // without data
  Importance importance;
  std::vector<Conversion> conversions;  // in file order; they refer to `input` and `importance`
  std::vector<OutputFile> outputs;
  size_t n_fallbacks = 0;           // tensors whose rows do not fit the intended type
  size_t n_without_importance = 0;  // tensors to be quantized that are not in the importance matrix
  size_t n_wanting_importance = 0;  // tensors that get a type of two bits or less, without an importance matrix

  uint64_t output_bytes(size_t conversion) const;
};

// Throws Error for everything that can be detected beforehand: types, flags, an output that is the input, a type that
// cannot be converted.
std::unique_ptr<QuantizePlan> plan_quantization(const QuantizeOptions& options);

}  // namespace infer
