// Activations as int8, for products by integer dot products: once for all products in a row that read them.
#include "backends/vulkan/vulkan_ops.h"

namespace infer::vulkan {
namespace {

constexpr int kLaneGroup = 256;  // values that a workgroup of the shader takes

struct QuantizePush {
  uint32_t k, count_at, fixed_rows, per_row, x_at, x_stride, out_at, out_stride;
};

// Words of 4 bytes of a row: codes, and two floats for each 16 of them.
int64_t quantized_row(int64_t k) { return k / 4 + k / 8; }

}  // namespace

size_t quantized_bytes(const TensorDesc& x) {
  const int64_t k = x.shape.last();
  return static_cast<size_t>(4 * quantized_row(k) * (x.shape.elements() / k));
}

QuantizedRows quantize(VulkanStream& stream, const Launch& launch, const TensorRef& x, DataType weight) {
  const TensorDesc& desc = *x.desc;
  const int64_t k = desc.shape.last(), per_row = desc.shape.row_elements() / k;
  const uint32_t block = traits(weight).activation == ActivationFormat::kInt8Per256 ? 256 : 32;
  const uint32_t stride = u32(desc.shape.rank == 3 ? k : desc.row_stride), to_stride = u32(quantized_row(k));
  const Operand in = stream.read(x);
  Operand to = stream.range(*launch.scratch.buffer, launch.scratch.offset, quantized_bytes(desc), true);
  const VulkanStream::Derived derived{in, to, {u32(k), stride, block}};
  if (!stream.has(derived)) {
    const auto [count_at, fixed] = row_count(desc);
    const QuantizePush push = {u32(k), count_at, fixed, u32(per_row), in.at, stride, to.at, to_stride};
    stream.dispatch("quantize", {block}, {stream.step(launch), in, to}, push,
                    {groups(k, kLaneGroup), u32(desc.shape[0] * per_row)});
    stream.keep(derived);
  }
  to.written = false;
  return {to, to_stride};
}

}  // namespace infer::vulkan
