// rope_table, rope and position_factor.
#include <memory>
#include <mutex>

#include "backends/cpu/cpu_ops.h"
#include "ggml-like/rope_angles.h"

namespace infer::cpu {
namespace {

// The angles are the same in every step. They are computed in the first one, when the frequency factors can be read.
struct PreparedRopeTable final : Prepared {
  mutable std::once_flag once;
  mutable RopeAngles angles;
};

std::unique_ptr<Prepared> prepare_rope_table(const OpDesc&, Device&) { return std::make_unique<PreparedRopeTable>(); }

void rope_table(const Prepared& prepared, const HostLaunch& launch, Stream& stream) {
  const RopeTableParams& params = launch.param<RopeTableParams>();
  const TensorRef& factors = launch.inputs[0];
  const size_t pairs = params.n_dims / 2;
  const auto& own = static_cast<const PreparedRopeTable&>(prepared);
  std::call_once(own.once, [&] {
    own.angles =
        rope_angles(params, factors ? std::span<const float>(factors.data<float>(), pairs) : std::span<const float>());
  });
  const RopeAngles& angles = own.angles;
  const std::span<const int32_t> positions = launch.step->positions();
  parallel_ranges(cpu(stream), static_cast<int64_t>(positions.size()), 16, [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t)
      rope_row(angles, positions[t] / params.period * params.period, launch.outputs[0].data<float>() + t * pairs * 2);
  });
}

void rope(const Prepared&, const HostLaunch& launch, Stream& stream) {
  const RopeParams& params = launch.param<RopeParams>();
  const TensorRef &x = launch.inputs[0], &table = launch.inputs[1], &out = launch.outputs[0];
  const int64_t heads = x.desc->shape[1], dim = x.desc->shape[2];
  parallel_ranges(cpu(stream), launch.rows(x), std::max<int64_t>(1, 4096 / (heads * dim)),
                  [&](int64_t begin, int64_t end, int) {
                    for (int64_t t = begin; t < end; ++t) {
                      for (int64_t h = 0; h < heads; ++h) {
                        cpu(stream).kernels().rope(x.data<float>() + t * x.desc->row_stride + h * dim,
                                                   table.data<float>() + t * params.n_dims, params.n_dims,
                                                   params.interleaved, out.data<float>() + (t * heads + h) * dim, dim);
                      }
                    }
                  });
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
      {Op::kRopeTable, supports_any, prepare_rope_table, launch_on_host<rope_table>},
      {Op::kRope, supports_any, nothing_to_prepare, launch_on_host<rope>},
      {Op::kPositionFactor, supports_any, nothing_to_prepare, launch_on_host<position_factors>},
  };
  return kRecords;
}

}  // namespace infer::cpu
