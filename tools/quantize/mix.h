// Which tensor of a model gets which type in Q4_K_M and similar files: the mixes that GGUF tools commonly mean by these
// names, as a table of rules. Pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ggml-like/data_type.h"
#include "ggml-like/gguf.h"
#include "tools/quantize/file_type.h"

namespace infer {

// The properties of the model that the rules use.
struct MixModel {
  std::string architecture;
  int64_t n_layer = 0;
  int64_t n_head = 0, n_kv_head = 0;  // of the first layer
  int64_t n_expert = 0;

  // Reads them from the metadata; missing keys leave 0.
  static MixModel of(const GgufFile& file);
};

struct MixTensor {
  std::string_view name;
  DataType type;
  std::span<const int64_t> shape;  // slowest dimension first
};

struct MixOptions {
  FileType type = FileType::kQ4_K_M;
  bool pure = false;          // use the base type for all tensors that may be quantized
  bool leave_output = false;  // keep the output matrix unchanged
  bool has_importance = false;
  std::optional<DataType> output_type, token_embedding_type;
  // A type that the user requested by tensor name.
  std::function<std::optional<DataType>(std::string_view name)> override_type;
};

struct MixChoice {
  DataType type;
  bool fell_back = false;  // the row is not a multiple of the intended type's block
};

// One choice per tensor, in order. A tensor that is not quantized keeps its type.
std::vector<MixChoice> choose_types(const MixModel& model, std::span<const MixTensor> tensors,
                                    const MixOptions& options);

}  // namespace infer
