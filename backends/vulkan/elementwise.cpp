// add, mul, scale, clamp, unary, xielu, gated_activation.
#include <array>

#include "backends/vulkan/vulkan_ops.h"

namespace infer::vulkan {
namespace {

struct BinaryPush {
  uint32_t n, count_at, fixed_rows, a_at, a_stride, b_at, b_stride, b_repeat, b_period, out_at;
  float gate_limit, activation_limit, up_limit, up_offset;  // of gated_activation
};

void binary(const Launch& launch, Stream& s, const char* shader, const std::vector<uint32_t>& constants,
            const GatedActivationParams& gated = {}) {
  VulkanStream& stream = vulkan(s);
  const TensorRef &a = launch.inputs[0], &b = launch.inputs[1], &out = launch.outputs[0];
  const Operand in_a = stream.read(a), in_b = stream.read(b), to = stream.write(out);
  const int64_t n = a.desc->shape.row_elements();
  const OperandMatch match = match_operands(*a.desc, *b.desc);
  const auto [count_at, fixed] = row_count(*a.desc);
  const BinaryPush push = {u32(n),
                           count_at,
                           fixed,
                           in_a.at,
                           u32(a.desc->row_stride),
                           in_b.at,
                           match.by_row ? u32(b.desc->row_stride) : 0,
                           u32(match.repeat),
                           u32(match.period),
                           to.at,
                           gated.gate_limit,
                           gated.activation_limit,
                           gated.up_limit,
                           gated.up_offset};
  stream.dispatch(shader, constants, {stream.step(launch), in_a, in_b, to}, push, {groups(n, kLanes), rows_of(a)});
}

struct MapPush {
  uint32_t n, count_at, fixed_rows, x_at, x_stride, out_at;
  std::array<float, 4> parameters;
};

void map(const Launch& launch, Stream& s, const char* shader, const std::vector<uint32_t>& constants,
         const std::array<float, 4>& parameters) {
  VulkanStream& stream = vulkan(s);
  const TensorRef &x = launch.inputs[0], &out = launch.outputs[0];
  const Operand in = stream.read(x), to = stream.write(out);
  const int64_t n = x.desc->shape.row_elements();
  const auto [count_at, fixed] = row_count(*x.desc);
  const MapPush push = {u32(n), count_at, fixed, in.at, u32(x.desc->row_stride), to.at, parameters};
  stream.dispatch(shader, constants, {stream.step(launch), in, to}, push, {groups(n, kLanes), rows_of(x)});
}

void add(const Prepared&, const Launch& launch, Stream& stream) { binary(launch, stream, "add", {}); }

void mul(const Prepared&, const Launch& launch, Stream& stream) { binary(launch, stream, "mul", {}); }

void gated_activation(const Prepared&, const Launch& launch, Stream& stream) {
  const GatedActivationParams& params = launch.param<GatedActivationParams>();
  binary(launch, stream, "gated_activation", {static_cast<uint32_t>(params.kind), params.plain() ? 0u : 1u}, params);
}

void scale(const Prepared&, const Launch& launch, Stream& stream) {
  map(launch, stream, "scale", {}, {launch.param<ScaleParams>().factor});
}

void clamp(const Prepared&, const Launch& launch, Stream& stream) {
  const ClampParams& params = launch.param<ClampParams>();
  map(launch, stream, "clamp", {}, {params.low, params.high});
}

void unary(const Prepared&, const Launch& launch, Stream& stream) {
  map(launch, stream, "unary", {static_cast<uint32_t>(launch.param<UnaryParams>().kind)}, {});
}

void xielu(const Prepared&, const Launch& launch, Stream& stream) {
  const XieluParams& p = launch.param<XieluParams>();
  map(launch, stream, "xielu", {}, {p.alpha_n, p.alpha_p, p.beta, p.eps});
}

}  // namespace

std::span<const OpRecord> elementwise_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kAdd, supports_any, nothing_to_prepare, add},
      {Op::kMul, supports_any, nothing_to_prepare, mul},
      {Op::kScale, supports_any, nothing_to_prepare, scale},
      {Op::kClamp, supports_any, nothing_to_prepare, clamp},
      {Op::kUnary, supports_any, nothing_to_prepare, unary},
      {Op::kXielu, supports_any, nothing_to_prepare, xielu},
      {Op::kGatedActivation, supports_any, nothing_to_prepare, gated_activation},
  };
  return kRecords;
}

}  // namespace infer::vulkan
