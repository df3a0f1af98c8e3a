// Converts activations to the form that a matmul needs, once for all consecutive matmuls that read them.
#include "backends/vulkan/vulkan_ops.h"

namespace infer::vulkan {
namespace {

struct ConvertPush {
  uint32_t k, count_at, fixed_rows, per_row, x_at, x_stride, out_at, out_stride;
};

// The stride of a row in 4-byte words, as in quantize.comp and to_half.comp.
int64_t row_words(ActivationForm form, int64_t k) {
  return form == ActivationForm::kHalves ? k / 2 + 4 : k / 4 + k / 8;
}

}  // namespace

size_t converted_bytes(ActivationForm form, const TensorDesc& x) {
  const int64_t k = x.shape.last();
  return static_cast<size_t>(4 * row_words(form, k) * (x.shape.elements() / k));
}

ConvertedRows convert(VulkanStream& stream, const Launch& launch, const TensorRef& x, ActivationForm form) {
  const TensorDesc& desc = *x.desc;
  const int64_t k = desc.shape.last(), per_row = desc.shape.row_elements() / k;
  const uint32_t stride = u32(desc.shape.rank == 3 ? k : desc.row_stride), to_stride = u32(row_words(form, k));
  const Operand in = stream.read(x);
  Operand to = stream.range(*launch.scratch.buffer, launch.scratch.offset, converted_bytes(form, desc), true);
  const VulkanStream::Derived derived{in, to, {static_cast<uint32_t>(form), u32(k), stride}};
  if (!stream.has(derived)) {
    const auto [count_at, fixed] = row_count(desc);
    const ConvertPush push = {u32(k), count_at, fixed, u32(per_row), in.at, stride, to.at, to_stride};
    const uint32_t tokens = u32(desc.shape[0]);
    if (form == ActivationForm::kHalves) {
      stream.dispatch("to_half", {}, {stream.step(launch), in, to}, push, {u32(per_row), tokens});
    } else {
      const uint32_t block = form == ActivationForm::kInt8Per256 ? 256 : 32;
      stream.dispatch("quantize", {block}, {stream.step(launch), in, to}, push, {groups(k, 256), u32(per_row), tokens});
    }
    stream.keep(derived);
  }
  to.written = false;
  return {to, to_stride};
}

}  // namespace infer::vulkan
