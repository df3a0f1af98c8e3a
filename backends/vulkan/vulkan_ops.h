// Shared by the operations of the Vulkan backend. There is one file per operation or family, with the same name as in
// ggml-like/ref and its records at the end; shaders are named after the operations.
//
// A launch function runs once per segment, while the segment is recorded. It must not use the step's counts, only its
// capacity: shaders read what changes between steps from the step's inputs.
#pragma once

#include "backends/vulkan/stream.h"
#include "ggml-like/backend.h"

namespace infer::vulkan {

// The device as its operations see it.
class VulkanDevice : public Device {
 public:
  virtual Context& context() const = 0;
  virtual Memory& memory_of_device() const = 0;
  virtual const Buffer* codebook(DataType type) = 0;  // Codebooks::get()
};
inline Context& context_of(const Device& device) { return static_cast<const VulkanDevice&>(device).context(); }

// The number of rows of a tensor that hold data: an index into the counts of the step's inputs, or kFixedRows and the
// number itself.
struct RowCount {
  uint32_t count_at, fixed_rows;
};
inline RowCount row_count(const TensorDesc& desc) {
  constexpr uint32_t kFixedRows = UINT32_MAX;
  const uint32_t rows = static_cast<uint32_t>(desc.shape[0]);
  switch (desc.rows) {
    case RowKind::kTokens:
      return {0, rows};
    case RowKind::kOutputs:
      return {1, rows};
    case RowKind::kLogits:
      return {3, rows};
    case RowKind::kFixed:
      break;
  }
  return {kFixedRows, rows};
}

// An operation with a weight.
struct PreparedWeight final : Prepared {
  const Buffer* codebook = nullptr;  // of the weight's type, or null
};
std::unique_ptr<PreparedWeight> prepare_weight(DataType type, Device& device);
// The codebook is the last operand, where there is one.
void add_codebook(VulkanStream& stream, const Prepared& prepared, std::vector<Operand>& operands);

inline uint32_t u32(int64_t value) { return static_cast<uint32_t>(value); }
// Lanes of a workgroup in shaders that compute a value in each; 16 values in embed.comp.
constexpr int kLanes = 64;
inline uint32_t groups(int64_t items, int64_t per_group) { return u32((items + per_group - 1) / per_group); }
inline uint32_t rows_of(const TensorRef& tensor) { return u32(tensor.desc->shape[0]); }

// A range of rows of a weight that fits in one binding. Offsets in shaders have 32 bits.
struct WeightRange {
  Operand operand;
  uint32_t row_begin, row_end, row_bytes;
};
// Splits `rows` rows, numbered across all experts, into ranges of at most `most_rows`.
std::vector<WeightRange> weight_ranges(VulkanStream& stream, const TensorRef& weight, int64_t rows, int64_t row_values,
                                       int64_t most_rows = INT64_MAX);

// Rows of activations as written by quantize.comp or to_half.comp, at the start of the launch's scratch memory, for
// which prepare() requests converted_bytes(). `stride` is in words of 4 bytes.
enum class ActivationForm { kInt8Per32, kInt8Per256, kHalves };
struct ConvertedRows {
  Operand operand;
  uint32_t stride;
};
size_t converted_bytes(ActivationForm form, const TensorDesc& x);
ConvertedRows convert(VulkanStream& stream, const Launch& launch, const TensorRef& x, ActivationForm form);

// Whether matmuls with cooperative matrices give correct results. REQUIRES a device that would use them.
bool matrices_are_right(VulkanDevice& device);

// The name of a reduction's shader for this device, with or without subgroup operations.
std::string reduction_shader(const Context& context, const char* name);
// The number of lanes of a reduction: the size of a subgroup, but at least `least`.
uint32_t reduction_lanes(const Context& context, uint32_t least);

std::unique_ptr<Prepared> nothing_to_prepare(const OpDesc& op, Device& device);
bool supports_any(const OpDesc& op, const Device& device);

size_t cache_block_bytes(const CacheDesc& cache);  // Device::cache_block_bytes()

// The operations of each file, for vulkan_device.cpp.
std::span<const OpRecord> attention_ops();
std::span<const OpRecord> columns_ops();
std::span<const OpRecord> elementwise_ops();
std::span<const OpRecord> matmul_ops();
std::span<const OpRecord> moe_ops();
std::span<const OpRecord> norm_ops();
std::span<const OpRecord> recurrent_ops();
std::span<const OpRecord> rope_ops();
std::span<const OpRecord> rows_ops();
std::span<const OpRecord> sparse_attention_ops();
std::span<const OpRecord> streams_ops();

}  // namespace infer::vulkan
