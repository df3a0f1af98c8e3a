// rope_table, rope and position_factor. The angle per position of each pair is computed here in double precision and
// passed to the shader in units of whole turns.
#include <cstring>
#include <numbers>

#include "backends/vulkan/vulkan_ops.h"
#include "ggml-like/rope_angles.h"

namespace infer::vulkan {
namespace {

struct PreparedTable final : Prepared {
  std::unique_ptr<Buffer> steps;  // [pairs, 2]: turns per position, as the sum of two floats
  float magnitude = 1;
};

struct TablePush {
  uint32_t pairs, positions_at, period, steps_at, factors_at, out_at;
  float magnitude;
};
struct FactorPush {
  uint32_t positions_at, interval, offset, out_at;
  float scale;
};
struct RopePush {
  uint32_t heads, dim, pairs, x_at, x_stride, table_at, out_at;
};

std::unique_ptr<Prepared> prepare_rope_table(const OpDesc& op, Device& device) {
  auto prepared = std::make_unique<PreparedTable>();
  const RopeAngles angles =
      rope_angles(op.param<RopeTableParams>(), {});  // the shader divides by the frequency factors
  prepared->magnitude = angles.magnitude;
  std::vector<float> steps;
  for (const double step : angles.step) {
    const double turns = step / (2 * std::numbers::pi);
    const float high = static_cast<float>(turns);
    steps.push_back(high);
    steps.push_back(static_cast<float>(turns - high));
  }
  const size_t bytes = steps.size() * sizeof(float);
  prepared->steps = device.allocate(bytes);
  const std::unique_ptr<Stream> stream = device.create_stream();
  stream->upload(*prepared->steps, 0, steps.data(), bytes);
  stream->synchronize();
  return prepared;
}

void rope_table(const Prepared& p, const Launch& launch, Stream& s) {
  VulkanStream& stream = vulkan(s);
  const auto& prepared = static_cast<const PreparedTable&>(p);
  const TensorRef &factors = launch.inputs[0], &out = launch.outputs[0];
  const Operand step = stream.step(launch), to = stream.write(out),
                steps = stream.range(*prepared.steps, 0, prepared.steps->size(), false);
  const Operand divisors = factors ? stream.read(factors) : step;
  const int64_t pairs = out.desc->shape[1];
  const TablePush push = {u32(pairs),
                          u32(static_cast<int64_t>(launch.step_layout->positions_at)),
                          u32(launch.param<RopeTableParams>().period),
                          steps.at,
                          divisors.at,
                          to.at,
                          prepared.magnitude};
  stream.dispatch("rope_table", {factors ? 1u : 0u}, {step, steps, divisors, to}, push,
                  {groups(pairs, kLanes), rows_of(out)});
}

void rope(const Prepared&, const Launch& launch, Stream& s) {
  VulkanStream& stream = vulkan(s);
  const RopeParams& params = launch.param<RopeParams>();
  const TensorRef &x = launch.inputs[0], &table = launch.inputs[1], &out = launch.outputs[0];
  const Operand in = stream.read(x), angles = stream.read(table), to = stream.write(out);
  const int64_t heads = x.desc->shape[1], dim = x.desc->shape[2];
  const RopePush push = {u32(heads), u32(dim), u32(params.n_dims / 2), in.at, u32(x.desc->row_stride),
                         angles.at,  to.at};
  stream.dispatch("rope", {params.interleaved ? 1u : 0u}, {stream.step(launch), in, angles, to}, push,
                  {groups(heads * dim, kLanes), rows_of(x)});
}

void position_factor(const Prepared&, const Launch& launch, Stream& s) {
  VulkanStream& stream = vulkan(s);
  const PositionFactorParams& params = launch.param<PositionFactorParams>();
  const Operand to = stream.write(launch.outputs[0]);
  const FactorPush push = {u32(static_cast<int64_t>(launch.step_layout->positions_at)), u32(params.interval),
                           u32(params.offset), to.at, params.scale};
  stream.dispatch("position_factor", {}, {stream.step(launch), to}, push,
                  {groups(launch.outputs[0].desc->shape[0], kLanes)});
}

}  // namespace

std::span<const OpRecord> rope_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kRopeTable, supports_any, prepare_rope_table, rope_table},
      {Op::kRope, supports_any, nothing_to_prepare, rope},
      {Op::kPositionFactor, supports_any, nothing_to_prepare, position_factor},
  };
  return kRecords;
}

}  // namespace infer::vulkan
