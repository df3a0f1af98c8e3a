#include "tools/quantize/file_type.h"

#include <algorithm>

#include "ggml-like/error.h"

namespace infer {
namespace {

using enum FileType;

constexpr FileTypeInfo kTypes[] = {
    {kF32, "F32", 0, DataType::kF32},           {kF16, "F16", 1, DataType::kF16},
    {kBF16, "BF16", 32, DataType::kBF16},       {kQ8_0, "Q8_0", 7, DataType::kQ8_0},
    {kQ4_0, "Q4_0", 2, DataType::kQ4_0},        {kQ4_1, "Q4_1", 3, DataType::kQ4_1},
    {kQ5_0, "Q5_0", 8, DataType::kQ5_0},        {kQ5_1, "Q5_1", 9, DataType::kQ5_1},
    {kQ2_K, "Q2_K", 10, DataType::kQ2_K},       {kQ2_K_S, "Q2_K_S", 21, DataType::kQ2_K},
    {kQ3_K_S, "Q3_K_S", 11, DataType::kQ3_K},   {kQ3_K_M, "Q3_K_M", 12, DataType::kQ3_K},
    {kQ3_K_L, "Q3_K_L", 13, DataType::kQ3_K},   {kQ4_K_S, "Q4_K_S", 14, DataType::kQ4_K},
    {kQ4_K_M, "Q4_K_M", 15, DataType::kQ4_K},   {kQ5_K_S, "Q5_K_S", 16, DataType::kQ5_K},
    {kQ5_K_M, "Q5_K_M", 17, DataType::kQ5_K},   {kQ6_K, "Q6_K", 18, DataType::kQ6_K},
    {kIQ4_NL, "IQ4_NL", 25, DataType::kIQ4_NL}, {kIQ4_XS, "IQ4_XS", 30, DataType::kIQ4_XS},
    {kMXFP4, "MXFP4", 38, DataType::kMXFP4},    {kIQ1_S, "IQ1_S", 24, DataType::kIQ1_S},
    {kIQ1_M, "IQ1_M", 31, DataType::kIQ1_M},    {kIQ2_XXS, "IQ2_XXS", 19, DataType::kIQ2_XXS},
    {kIQ2_XS, "IQ2_XS", 20, DataType::kIQ2_XS}, {kIQ2_S, "IQ2_S", 28, DataType::kIQ2_XS},
    {kIQ2_M, "IQ2_M", 29, DataType::kIQ2_S},    {kIQ3_XXS, "IQ3_XXS", 23, DataType::kIQ3_XXS},
    {kIQ3_XS, "IQ3_XS", 22, DataType::kIQ3_S},  {kIQ3_S, "IQ3_S", 26, DataType::kIQ3_S},
    {kIQ3_M, "IQ3_M", 27, DataType::kIQ3_S},    {kTQ1_0, "TQ1_0", 36, DataType::kTQ1_0},
    {kTQ2_0, "TQ2_0", 37, DataType::kTQ2_0},    {kQ1_0, "Q1_0", 40, DataType::kQ1_0},
    {kQ2_0, "Q2_0", 41, DataType::kQ2_0},
};

struct Alias {
  std::string_view name;
  FileType type;
};

constexpr Alias kAliases[] = {
    {"Q3_K", kQ3_K_M}, {"Q4_K", kQ4_K_M}, {"Q5_K", kQ5_K_M}, {"MXFP4_MOE", kMXFP4}, {"FP16", kF16}, {"FP32", kF32},
};

constexpr std::string_view kCopy = "COPY";

bool same_name(std::string_view a, std::string_view upper) {
  return std::equal(a.begin(), a.end(), upper.begin(), upper.end(),
                    [](char x, char y) { return (x >= 'a' && x <= 'z' ? x - 'a' + 'A' : x) == y; });
}

}  // namespace

std::span<const FileTypeInfo> file_types() { return kTypes; }

const FileTypeInfo& file_type_info(FileType type) {
  const FileTypeInfo& info = kTypes[static_cast<size_t>(type)];
  CHECK_INTERNAL(info.type == type);
  return info;
}

const FileTypeInfo* find_file_type(std::string_view name) {
  for (const FileTypeInfo& info : kTypes) {
    if (same_name(name, info.name)) return &info;
  }
  for (const Alias& alias : kAliases) {
    if (same_name(name, alias.name)) return &file_type_info(alias.type);
  }
  return nullptr;
}

bool is_copy(std::string_view name) { return same_name(name, kCopy); }

std::string file_type_names() {
  std::string names;
  for (const FileTypeInfo& info : kTypes) names += concat(info.name, ", ");
  return concat(names, kCopy);
}

}  // namespace infer
