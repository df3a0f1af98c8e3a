// rms_norm, layer_norm, rms, softmax and sparsify over the last dimension: a workgroup per vector.
#include "backends/vulkan/vulkan_ops.h"

namespace infer::vulkan {
namespace {

struct NormPush {
  uint32_t d, per_row, count_at, fixed_rows, x_at, x_stride, weight_at, bias_at, out_at;
  float parameter;  // eps of the norms, the factor of sparsify
};

void reduce(const Launch& launch, Stream& s, const char* shader, const TensorRef& weight, const TensorRef& bias,
            float parameter) {
  VulkanStream& stream = vulkan(s);
  const TensorRef &x = launch.inputs[0], &out = launch.outputs[0];
  const Operand step = stream.step(launch), in = stream.read(x), to = stream.write(out);
  const Operand factors = weight ? stream.read(weight) : step, shift = bias ? stream.read(bias) : step;
  const int64_t d = x.desc->shape.last(), per_row = x.desc->shape.row_elements() / d;
  const auto [count_at, fixed] = row_count(*x.desc);
  const NormPush push = {u32(d),     u32(per_row), count_at, fixed,    in.at, u32(x.desc->row_stride),
                         factors.at, shift.at,     to.at,    parameter};
  // Short vectors, such as heads, need few lanes.
  const uint32_t lanes = reduction_lanes(stream.context(), d > 512 ? 256 : 32);
  stream.dispatch(reduction_shader(stream.context(), shader), {lanes, weight ? 1u : 0u, bias ? 1u : 0u},
                  {step, in, factors, shift, to}, push, {u32(per_row), rows_of(x)});
}

void rms_norm(const Prepared&, const Launch& launch, Stream& stream) {
  reduce(launch, stream, "rms_norm", launch.inputs[1], {}, launch.param<NormParams>().eps);
}

void layer_norm(const Prepared&, const Launch& launch, Stream& stream) {
  reduce(launch, stream, "layer_norm", launch.inputs[1], launch.inputs[2], launch.param<NormParams>().eps);
}

void rms(const Prepared&, const Launch& launch, Stream& stream) { reduce(launch, stream, "rms", {}, {}, 0); }

void softmax(const Prepared&, const Launch& launch, Stream& stream) { reduce(launch, stream, "softmax", {}, {}, 0); }

void sparsify(const Prepared&, const Launch& launch, Stream& stream) {
  reduce(launch, stream, "sparsify", {}, {}, launch.param<SparsifyParams>().factor);
}

}  // namespace

std::span<const OpRecord> norm_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kRmsNorm, supports_any, nothing_to_prepare, rms_norm},
      {Op::kLayerNorm, supports_any, nothing_to_prepare, layer_norm},
      {Op::kRms, supports_any, nothing_to_prepare, rms},
      {Op::kSoftmax, supports_any, nothing_to_prepare, softmax},
      {Op::kSparsify, supports_any, nothing_to_prepare, sparsify},
  };
  return kRecords;
}

}  // namespace infer::vulkan
