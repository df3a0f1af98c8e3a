#include "backends/vulkan/vulkan_ops.h"

#include <algorithm>

#include "ggml-like/error.h"

namespace infer::vulkan {

std::vector<WeightRange> weight_ranges(VulkanStream& stream, const TensorRef& weight, int64_t rows, int64_t row_values,
                                       int64_t most_rows) {
  const VulkanBuffer& buffer = static_cast<VulkanBuffer&>(*weight.buffer);
  const uint64_t row = row_bytes(weight.desc->type, row_values);
  const uint64_t most = stream.context().max_binding() - stream.context().binding_alignment() - 4;
  std::vector<WeightRange> ranges;
  for (int64_t first = 0; first < rows;) {
    const uint64_t offset = weight.offset + static_cast<uint64_t>(first) * row;
    const size_t piece = buffer.piece_at(offset);
    const uint64_t end = std::min<uint64_t>(piece * buffer.step() + buffer.pieces()[piece].bytes, buffer.size());
    const int64_t fit = static_cast<int64_t>(std::min(most, end - offset) / row);
    if (fit == 0) {
      throw Error(ErrorCode::kUnsupported,
                  concat("[", stream.context().name(), "] expected weights with rows of at most ",
                         std::min(most, Memory::kOverlap), " bytes, found ", row));
    }
    const int64_t count = std::min({rows - first, fit, most_rows});
    ranges.push_back({stream.range(buffer, offset, static_cast<uint64_t>(count) * row, false), u32(first),
                      u32(first + count), u32(static_cast<int64_t>(row))});
    first += count;
  }
  return ranges;
}

std::string reduction_shader(const Context& context, const char* name) {
  return context.subgroups() ? name : concat(name, "_plain");
}

uint32_t reduction_lanes(const Context& context, uint32_t least) {
  const uint32_t pretended = context.options.subgroup_size;
  const uint32_t size = pretended ? pretended : context.subgroups() ? context.subgroup_size() : 32;
  const uint32_t lanes = std::max(least, std::clamp(size, 8u, 64u));
  uint32_t power = 1;  // tree reductions need one
  while (power < lanes) power *= 2;
  return power;
}

std::unique_ptr<PreparedWeight> prepare_weight(DataType type, Device& device) {
  auto prepared = std::make_unique<PreparedWeight>();
  prepared->codebook = static_cast<VulkanDevice&>(device).codebook(type);
  return prepared;
}

void add_codebook(VulkanStream& stream, const Prepared& prepared, std::vector<Operand>& operands) {
  const Buffer* codebook = static_cast<const PreparedWeight&>(prepared).codebook;
  if (codebook) operands.push_back(stream.range(*codebook, 0, codebook->size(), false));
}

std::unique_ptr<Prepared> nothing_to_prepare(const OpDesc&, Device&) { return std::make_unique<Prepared>(); }

bool supports_any(const OpDesc&, const Device&) { return true; }

}  // namespace infer::vulkan
