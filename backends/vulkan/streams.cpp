// mix_streams.
#include "backends/vulkan/vulkan_ops.h"

namespace infer::vulkan {
namespace {

struct MixPush {
  uint32_t n, d, streams, count_at, fixed_rows, x_at, x_stride, weights_at, weights_stride, out_at;
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

}  // namespace

std::span<const OpRecord> streams_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kMixStreams, supports_any, nothing_to_prepare, mix_streams},
  };
  return kRecords;
}

}  // namespace infer::vulkan
