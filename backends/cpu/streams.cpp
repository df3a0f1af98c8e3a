// mix_streams.
#include "backends/cpu/cpu_ops.h"

namespace infer::cpu {
namespace {

void mix_streams(const Prepared&, const HostLaunch& launch, Stream& stream) {
  const TensorRef &x = launch.inputs[0], &weights = launch.inputs[1], &out = launch.outputs[0];
  const int64_t streams = x.desc->shape[1], d = x.desc->shape[2], mixed = out.desc->shape[1];
  const KernelTable& kernels = cpu(stream).kernels();
  const int64_t least = 16384 / (streams * d);  // mixed vectors that are worth a thread
  parallel_ranges(cpu(stream), launch.rows(x) * mixed, least, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const float* from = x.data<float>() + i / mixed * x.desc->row_stride;
      const float* w = weights.data<float>() + i / mixed * weights.desc->row_stride + i % mixed * streams;
      float* sum = out.data<float>() + i * d;
      kernels.scale(from, w[0], sum, d);
      for (int64_t s = 1; s < streams; ++s) kernels.weighted_add(from + s * d, w[s], sum, d);
    }
  });
}

}  // namespace

std::span<const OpRecord> streams_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kMixStreams, supports_any, nothing_to_prepare, launch_on_host<mix_streams>},
  };
  return kRecords;
}

}  // namespace infer::cpu
