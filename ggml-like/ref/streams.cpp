// mix_streams.
#include "ggml-like/ref/ref_ops.h"

namespace infer::ref {
namespace {

void mix_streams(const Prepared&, const HostLaunch& launch, Stream&) {
  const TensorRef &x = launch.inputs[0], &weights = launch.inputs[1], &out = launch.outputs[0];
  const int64_t streams = x.desc->shape[1], d = x.desc->shape[2], mixed = out.desc->shape[1];
  for (int64_t r = 0; r < launch.rows(x); ++r) {
    const float* from = x.data<float>() + r * x.desc->row_stride;
    for (int64_t i = 0; i < mixed * d; ++i) {
      const float* w = weights.data<float>() + r * weights.desc->row_stride + i / d * streams;
      double sum = 0;
      for (int64_t s = 0; s < streams; ++s) sum += static_cast<double>(w[s]) * from[s * d + i % d];
      out.data<float>()[r * mixed * d + i] = static_cast<float>(sum);
    }
  }
}

}  // namespace

std::span<const OpRecord> streams_ops() {
  static constexpr OpRecord kRecords[] = {
      reference<mix_streams>(Op::kMixStreams),
  };
  return kRecords;
}

}  // namespace infer::ref
