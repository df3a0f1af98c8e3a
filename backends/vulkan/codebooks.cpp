#include "backends/vulkan/codebooks.h"

#include <span>

#include "backends/vulkan/stream.h"
#include "ggml-like/quant/codebooks_data.h"

namespace infer::vulkan {
namespace {

std::span<const uint16_t> packed_codebook(DataType type) {
  switch (type) {
    case DataType::kIQ2_XXS:
      return kPackedIQ2XXS;
    case DataType::kIQ2_XS:
      return kPackedIQ2XS;
    case DataType::kIQ2_S:
      return kPackedIQ2S;
    case DataType::kIQ3_XXS:
      return kPackedIQ3XXS;
    case DataType::kIQ3_S:
      return kPackedIQ3S;
    case DataType::kIQ1_S:
    case DataType::kIQ1_M:
      return kPackedIQ1;
    default:
      return {};
  }
}

}  // namespace

const Buffer* Codebooks::get(DataType type) {
  const std::span<const uint16_t> entries = packed_codebook(type);
  if (entries.empty()) return nullptr;
  std::unique_ptr<Buffer>& buffer = buffers_[entries.data()];
  if (!buffer) {
    auto filled = std::make_unique<VulkanBuffer>(memory_, entries.size_bytes());
    VulkanStream stream(memory_, pipelines_);
    stream.upload(*filled, 0, entries.data(), entries.size_bytes());
    stream.synchronize();
    buffer = std::move(filled);
  }
  return buffer.get();
}

}  // namespace infer::vulkan
