// rope_table, rope and position_factor.
#include "ggml-like/ref/ref_ops.h"
#include "ggml-like/rope_angles.h"

namespace infer::ref {
namespace {

void rope_table(const Prepared&, const HostLaunch& launch, Stream&) {
  const RopeTableParams& params = launch.param<RopeTableParams>();
  const TensorRef& factors = launch.inputs[0];
  const size_t pairs = params.n_dims / 2;
  const RopeAngles angles =
      rope_angles(params, factors ? std::span<const float>(factors.data<float>(), pairs) : std::span<const float>());
  const std::span<const int32_t> positions = launch.step->positions();
  for (size_t t = 0; t < positions.size(); ++t) {
    rope_row(angles, positions[t] / params.period * params.period, launch.outputs[0].data<float>() + t * pairs * 2);
  }
}

void rope(const Prepared&, const HostLaunch& launch, Stream&) {
  const RopeParams& params = launch.param<RopeParams>();
  const TensorRef &x = launch.inputs[0], &table = launch.inputs[1], &out = launch.outputs[0];
  const int64_t heads = x.desc->shape[1], dim = x.desc->shape[2], pairs = params.n_dims / 2;
  for (int64_t t = 0; t < launch.rows(x); ++t) {
    const float* angle = table.data<float>() + t * pairs * 2;
    for (int64_t h = 0; h < heads; ++h) {
      const float* from = x.data<float>() + t * x.desc->row_stride + h * dim;
      float* to = out.data<float>() + (t * heads + h) * dim;
      for (int64_t i = 0; i < pairs; ++i) {
        const int64_t a = params.interleaved ? 2 * i : i, b = params.interleaved ? 2 * i + 1 : i + pairs;
        const double c = angle[2 * i], s = angle[2 * i + 1];
        to[a] = static_cast<float>(from[a] * c - from[b] * s);
        to[b] = static_cast<float>(from[a] * s + from[b] * c);
      }
      for (int64_t i = params.n_dims; i < dim; ++i) to[i] = from[i];
    }
  }
}

void position_factors(const Prepared&, const HostLaunch& launch, Stream&) {
  const PositionFactorParams& params = launch.param<PositionFactorParams>();
  const std::span<const int32_t> positions = launch.step->positions();
  for (size_t t = 0; t < positions.size(); ++t) {
    launch.outputs[0].data<float>()[t] = position_factor(params, positions[t]);
  }
}

}  // namespace

std::span<const OpRecord> rope_ops() {
  static constexpr OpRecord kRecords[] = {
      reference<rope_table>(Op::kRopeTable),
      reference<rope>(Op::kRope),
      reference<position_factors>(Op::kPositionFactor),
  };
  return kRecords;
}

}  // namespace infer::ref
