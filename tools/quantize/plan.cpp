#include "tools/quantize/plan.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "ggml-like/printable.h"
#include "tools/imatrix/importance_sums.h"
#include "tools/model_by_name.h"
#include "tools/name_pattern.h"
#include "tools/quantize/mix.h"

namespace infer {
namespace {

constexpr size_t kMaxParts = 500;  // each keeps a writer open until the end
constexpr uint32_t kQuantizationVersion = 2;

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::kInvalidArgument, concat("[quantize] ", what));
}

template <typename Expected, typename Found>
[[noreturn]] void refuse(const std::string& subject, const Expected& expected, const Found& found) {
  throw Error(ErrorCode::kInvalidArgument, expected_found("quantize", subject, expected, found));
}

DataType weight_type(const std::string& flag, const std::string& name) {
  const TypeTraits* type = find_type(name);
  if (type && type->from_float && type->type != DataType::kQ8_K) return type->type;
  std::string names;
  for (const TypeTraits& t : all_types()) {
    if (t.from_float && t.type != DataType::kQ8_K) names += (names.empty() ? "" : ", ") + std::string(t.name);
  }
  refuse(flag, "one of " + names, printable(name));
}

// ---- Types ----

struct TypeOverride {
  NamePattern pattern;
  DataType type;
};

std::vector<TypeOverride> parse_overrides(const std::vector<std::string>& texts) {
  std::vector<TypeOverride> overrides;
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos) refuse("--tensor-type", "REGEX=TYPE", printable(text));
    overrides.push_back(
        {NamePattern("--tensor-type", text.substr(0, equals)), weight_type("--tensor-type", text.substr(equals + 1))});
  }
  return overrides;
}

std::vector<MixChoice> choose_types(const QuantizeOptions& options, const GgufFile& input, const FileTypeInfo& type) {
  const std::vector<TypeOverride> overrides = parse_overrides(options.tensor_types);
  MixOptions mix = options.mix;
  mix.type = type.type;
  mix.has_importance = !options.importance.empty();
  if (!options.output_tensor_type.empty())
    mix.output_type = weight_type("--output-tensor-type", options.output_tensor_type);
  if (!options.token_embedding_type.empty())
    mix.token_embedding_type = weight_type("--token-embedding-type", options.token_embedding_type);
  if (!overrides.empty()) {
    mix.override_type = [&](std::string_view name) -> std::optional<DataType> {
      const auto at =
          std::find_if(overrides.begin(), overrides.end(), [&](auto& o) { return o.pattern.matches(name); });
      return at == overrides.end() ? std::nullopt : std::optional(at->type);
    };
  }
  std::vector<MixTensor> tensors;
  for (const GgufTensor& tensor : input.tensors()) tensors.push_back({tensor.name, tensor.type, tensor.shape});
  return choose_types(MixModel::of(input), tensors, mix);
}

std::vector<MixChoice> own_types(const GgufFile& input) {
  std::vector<MixChoice> types;
  for (const GgufTensor& tensor : input.tensors()) types.push_back({tensor.type});
  return types;
}

void check_copy(const QuantizeOptions& o) {
  const bool chooses = o.mix.pure || o.mix.leave_output || !o.importance.empty() || !o.tensor_types.empty() ||
                       !o.output_tensor_type.empty() || !o.token_embedding_type.empty();
  if (!chooses) return;
  refuse(
      "COPY keeps the type of every tensor. Leave out --pure, --leave-output-tensor, --imatrix and the flags for "
      "types");
}

void check_convertible(const Conversion& c, bool allow_requantize) {
  const TypeTraits& from = traits(c.tensor->type);
  const std::string where = concat("tensor ", printable(c.tensor->name));
  if (!from.to_float) {
    throw Error(ErrorCode::kUnsupported,
                concat("[quantize] ", where, ": no conversion from ", from.name, " to ", traits(c.type).name));
  }
  if (from.quantized && !allow_requantize) {
    refuse(concat(where, " is ", from.name, " and would become ", traits(c.type).name,
                  ". Quantizing twice costs quality; --allow-requantize allows it"));
  }
}

// The importance of a tensor's columns, for each of its matrices.
const Importance::Entry* importance_of(const Importance& importance, const GgufTensor& tensor) {
  const Importance::Entry* entry = importance.find(tensor.name);
  if (!entry) return nullptr;
  const int64_t expected = importance_size(tensor);
  if (static_cast<int64_t>(entry->weights.size()) == expected) return entry;
  throw Error(ErrorCode::kInvalidFile,
              expected_found("imatrix", "tensor " + printable(tensor.name), concat(expected, " weights"),
                             concat(entry->weights.size(), "; use an importance matrix of this model")));
}

// Types with such small codebooks that an importance matrix improves the model a lot.
bool wants_importance(DataType type) {
  using enum DataType;
  constexpr DataType kTypes[] = {kIQ1_S, kIQ1_M, kIQ2_XXS, kIQ2_XS, kIQ2_S};
  return std::ranges::find(kTypes, type) != std::end(kTypes);
}

// ---- Files ----

// Parts of at most `limit` bytes of data, but at least one tensor each.
std::vector<std::vector<size_t>> split_by_size(const QuantizePlan& plan, uint64_t limit) {
  std::vector<std::vector<size_t>> parts(1);
  uint64_t n = 0;
  for (size_t i = 0; i < plan.conversions.size(); ++i) {
    const uint64_t bytes = plan.output_bytes(i);
    if (!parts.back().empty() && n + bytes > limit) {
      parts.emplace_back();
      n = 0;
    }
    parts.back().push_back(i);
    n += bytes;
  }
  return parts;
}

std::vector<std::vector<size_t>> split_as_input(const QuantizePlan& plan) {
  std::vector<std::vector<size_t>> parts(plan.input->parts().size());
  for (size_t i = 0; i < plan.conversions.size(); ++i) parts[plan.conversions[i].tensor->part].push_back(i);
  return parts;
}

// Parses "500M" or "2G"; decimal units, as for disks.
uint64_t parse_size(const std::string& text) {
  uint64_t n = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, n);
  const bool unit = error == std::errc() && end - at == 1 && (*at == 'M' || *at == 'G');
  if (!unit || n == 0 || n > 1000000) refuse("--split-size", "a number and M or G", printable(text));
  return n * (*at == 'M' ? 1000000 : 1000000000);
}

std::filesystem::path split_path(const std::filesystem::path& path, size_t number, size_t count) {
  char suffix[40];
  std::snprintf(suffix, sizeof(suffix), "-%05zu-of-%05zu.gguf", number, count);
  std::string stem = path.string();
  if (stem.ends_with(".gguf")) stem.resize(stem.size() - 5);
  return stem + suffix;
}

using Metadata = std::vector<std::pair<std::string, GgufValue>>;

void set_value(Metadata& metadata, const std::string& key, GgufValue value) {
  const auto at = std::find_if(metadata.begin(), metadata.end(), [&](auto& entry) { return entry.first == key; });
  if (at == metadata.end()) metadata.emplace_back(key, std::move(value));
  else at->second = std::move(value);
}

// `type`: null for a copy.
Metadata new_metadata(const QuantizeOptions& options, const QuantizePlan& plan, const FileTypeInfo* type) {
  Metadata metadata = plan.input->metadata();
  std::erase_if(metadata, [](const auto& entry) { return entry.first.starts_with("split."); });
  if (!type) return metadata;
  set_value(metadata, "general.quantization_version", GgufValue::of_uint32(kQuantizationVersion));
  set_value(metadata, "general.file_type", GgufValue::of_uint32(type->number));
  if (plan.importance.empty()) {
    // Data about an earlier quantization does not apply to this one.
    std::erase_if(metadata, [](const auto& entry) { return entry.first.starts_with("quantize.imatrix."); });
    return metadata;
  }
  set_value(metadata, "quantize.imatrix.file",
            GgufValue::of_string(std::filesystem::path(options.importance).filename().string()));
  if (!plan.importance.dataset().empty())
    set_value(metadata, "quantize.imatrix.dataset", GgufValue::of_string(plan.importance.dataset()));
  set_value(metadata, "quantize.imatrix.entries_count",
            GgufValue::of_uint32(static_cast<uint32_t>(plan.importance.size())));
  if (plan.importance.n_chunks() > 0) {
    set_value(metadata, "quantize.imatrix.chunks_count",
              GgufValue::of_uint32(static_cast<uint32_t>(std::min<int64_t>(plan.importance.n_chunks(), UINT32_MAX))));
  }
  return metadata;
}

void plan_outputs(const QuantizeOptions& options, const FileTypeInfo* type, QuantizePlan& plan) {
  std::vector<std::vector<size_t>> parts;
  if (!options.split_size.empty()) parts = split_by_size(plan, parse_size(options.split_size));
  else if (options.keep_split) parts = split_as_input(plan);
  const Metadata metadata = new_metadata(options, plan, type);
  if (parts.size() <= 1) {
    std::vector<size_t> all(plan.conversions.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    plan.outputs.push_back({options.output, metadata, std::move(all)});
    return;
  }
  if (parts.size() > kMaxParts)
    refuse("--split-size", concat("at most ", kMaxParts, " parts"), concat(parts.size(), "; raise it"));
  for (size_t i = 0; i < parts.size(); ++i) {
    OutputFile& file = plan.outputs.emplace_back();
    file.path = split_path(options.output, i + 1, parts.size());
    if (i == 0) file.metadata = metadata;
    file.metadata.emplace_back("split.no", GgufValue::of_int(GgufType::kUint16, static_cast<int64_t>(i)));
    file.metadata.emplace_back("split.count", GgufValue::of_int(GgufType::kUint16, static_cast<int64_t>(parts.size())));
    file.metadata.emplace_back("split.tensors.count",
                               GgufValue::of_int(GgufType::kInt32, static_cast<int64_t>(plan.conversions.size())));
    file.tensors = std::move(parts[i]);
  }
}

void check_outputs(const QuantizeOptions& options, const QuantizePlan& plan) {
  std::error_code ignored;
  for (const OutputFile& output : plan.outputs) {
    if (std::filesystem::is_directory(output.path, ignored))
      throw Error(ErrorCode::kIo,
                  concat("[quantize] ", printable_path(output.path), ": expected a file, found a directory"));
    for (const auto& part : plan.input->parts()) {
      if (std::filesystem::equivalent(part, output.path, ignored))
        refuse(concat(printable_path(output.path), " is the input itself. Give another name as OUT."));
    }
    if (!options.importance.empty() && std::filesystem::equivalent(options.importance, output.path, ignored))
      refuse(concat(printable_path(output.path), " is the importance matrix. Give another name as OUT."));
  }
}

}  // namespace

uint64_t QuantizePlan::output_bytes(size_t i) const {
  return row_bytes(conversions[i].type, conversions[i].tensor->n_elements());
}

std::unique_ptr<QuantizePlan> plan_quantization(const QuantizeOptions& options) {
  const bool copy = is_copy(options.type);
  const FileTypeInfo* type = copy ? nullptr : find_file_type(options.type);
  if (!type && !copy) refuse("TYPE", "one of " + file_type_names(), printable(options.type));
  if (copy) check_copy(options);
  auto plan = std::make_unique<QuantizePlan>();
  // Tensors are read slice by slice, see ModelParts.
  plan->input = open_model(options.input, {.map_data = false});
  const std::vector<MixChoice> choices = copy ? own_types(*plan->input) : choose_types(options, *plan->input, *type);
  if (!options.importance.empty()) plan->importance = Importance::load(options.importance);

  size_t n_with_importance = 0;
  for (size_t i = 0; i < choices.size(); ++i) {
    Conversion c{&plan->input->tensors()[i], choices[i].type};
    plan->n_fallbacks += choices[i].fell_back;
    if (c.type != c.tensor->type) check_convertible(c, options.allow_requantize);
    if (!plan->importance.empty() && traits(c.type).quantized && c.type != c.tensor->type) {
      c.importance = importance_of(plan->importance, *c.tensor);
      ++(c.importance ? n_with_importance : plan->n_without_importance);
    }
    plan->n_wanting_importance += plan->importance.empty() && c.type != c.tensor->type && wants_importance(c.type);
    plan->conversions.push_back(c);
  }
  if (n_with_importance == 0 && plan->n_without_importance > 0) {
    throw Error(ErrorCode::kInvalidFile, concat("[imatrix] ", printable(options.importance, 4096),
                                                " has no entry for any tensor of this model"));
  }
  plan_outputs(options, type, *plan);
  check_outputs(options, *plan);
  return plan;
}

}  // namespace infer
