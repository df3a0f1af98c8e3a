// mix_streams, agreement and sinkhorn.
#include <cmath>

#include "backends/vulkan/vulkan_ops.h"

namespace infer::vulkan {
namespace {

struct MixPush {
  uint32_t n, d, streams, count_at, fixed_rows, x_at, x_stride, weights_at, weights_stride, out_at;
};
struct AgreementPush {
  uint32_t heads, d, count_at, fixed_rows, a_at, a_stride, b_at, b_stride, out_at;
  float root_of_d, least;
};
struct SinkhornPush {
  uint32_t iterations, count_at, fixed_rows, x_at, x_stride, out_at;
  float eps;
};

void mix_streams(const Prepared&, const Launch& launch, Stream& s) {
  VulkanStream& stream = vulkan(s);
  const TensorRef &x = launch.inputs[0], &weights = launch.inputs[1], &out = launch.outputs[0];
  const Operand in = stream.read(x), factors = stream.read(weights), to = stream.write(out);
  const int64_t n = out.desc->shape.row_elements();
  const auto [count_at, fixed] = row_count(*x.desc);
  const MixPush push = {u32(n),
                        u32(x.desc->shape[2]),
                        u32(x.desc->shape[1]),
                        count_at,
                        fixed,
                        in.at,
                        u32(x.desc->row_stride),
                        factors.at,
                        u32(weights.desc->row_stride),
                        to.at};
  stream.dispatch("mix_streams", {}, {stream.step(launch), in, factors, to}, push, {groups(n, 64), rows_of(x)});
}

void agreement(const Prepared&, const Launch& launch, Stream& s) {
  VulkanStream& stream = vulkan(s);
  const TensorRef &a = launch.inputs[0], &b = launch.inputs[1];
  const Operand first = stream.read(a), second = stream.read(b), to = stream.write(launch.outputs[0]);
  const int64_t heads = a.desc->shape[1], d = a.desc->shape[2];
  const auto [count_at, fixed] = row_count(*a.desc);
  const AgreementPush push = {u32(heads),
                              u32(d),
                              count_at,
                              fixed,
                              first.at,
                              u32(a.desc->row_stride),
                              second.at,
                              u32(b.desc->row_stride),
                              to.at,
                              static_cast<float>(std::sqrt(static_cast<double>(d))),
                              static_cast<float>(kLeastAgreement)};
  stream.dispatch("agreement", {}, {stream.step(launch), first, second, to}, push, {u32(heads), rows_of(a)});
}

constexpr int64_t kMatrixRows = 64;  // of sinkhorn.comp: each has a row of a matrix

bool supports_sinkhorn(const OpDesc& op, const Device& device) {
  const int64_t n = op.inputs[0]->shape[1];
  return n <= kMatrixRows &&
         sizeof(float) * static_cast<size_t>(kMatrixRows / n * n * n) <= context_of(device).max_shared();
}

void sinkhorn(const Prepared&, const Launch& launch, Stream& s) {
  VulkanStream& stream = vulkan(s);
  const TensorRef& x = launch.inputs[0];
  const SinkhornParams& params = launch.param<SinkhornParams>();
  const Operand in = stream.read(x), to = stream.write(launch.outputs[0]);
  const int64_t n = x.desc->shape[1], matrices = kMatrixRows / n;  // of a workgroup
  const auto [count_at, fixed] = row_count(*x.desc);
  const SinkhornPush push = {u32(params.iterations),  count_at, fixed,     in.at,
                             u32(x.desc->row_stride), to.at,    params.eps};
  stream.dispatch("sinkhorn", {u32(n), u32(matrices * n * n)}, {stream.step(launch), in, to}, push,
                  {groups(rows_of(x), matrices)});
}

}  // namespace

std::span<const OpRecord> streams_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kMixStreams, supports_any, nothing_to_prepare, mix_streams},
      {Op::kAgreement, supports_any, nothing_to_prepare, agreement},
      {Op::kSinkhorn, supports_sinkhorn, nothing_to_prepare, sinkhorn},
  };
  return kRecords;
}

}  // namespace infer::vulkan
