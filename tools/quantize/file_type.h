// The TYPE argument of `infer quantize`, which also names the kind of quantized file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ggml-like/data_type.h"

namespace infer {

enum class FileType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ2_K,
  kQ2_K_S,
  kQ3_K_S,
  kQ3_K_M,
  kQ3_K_L,
  kQ4_K_S,
  kQ4_K_M,
  kQ5_K_S,
  kQ5_K_M,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS,
  kMXFP4,
  kIQ1_S,
  kIQ1_M,
  kIQ2_XXS,
  kIQ2_XS,
  kIQ2_S,
  kIQ2_M,
  kIQ3_XXS,
  kIQ3_XS,
  kIQ3_S,
  kIQ3_M,
  kTQ1_0,
  kTQ2_0,
  kQ1_0,
  kQ2_0,
};

struct FileTypeInfo {
  FileType type;
  std::string_view name;
  uint32_t number;  // value of general.file_type
  DataType base;    // for tensors that no rule covers
};

std::span<const FileTypeInfo> file_types();
const FileTypeInfo& file_type_info(FileType type);
// Finds a type by name, in upper or lower case, or by another common name (Q4_K for Q4_K_M, MXFP4_MOE for MXFP4);
// nullptr if unknown.
const FileTypeInfo* find_file_type(std::string_view name);
// Whether TYPE asks to keep the type of every tensor.
bool is_copy(std::string_view name);
// All names, for messages: "F32, F16, ...".
std::string file_type_names();

}  // namespace infer
