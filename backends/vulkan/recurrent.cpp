// short_conv, gated_pool, token_shift, selective_scan, delta_rule, wkv. A workgroup has one sequence of the step and
// some of its channels, rows or columns, whose states no other workgroup touches, token by token, so that results do
// not depend on how a text is split into steps. short_conv and token_shift need a state only for a sequence's first
// rows.
#include <algorithm>
#include <bit>

#include "backends/vulkan/vulkan_ops.h"

namespace infer::vulkan {
namespace {

constexpr int kChannels = 64;  // of a workgroup, where a lane has one channel

// As States in glsl/runs.glsl.
struct StatePush {
  uint32_t positions_at, sequences_at, table_at, table_stride, slots_at, slot_values;
};
struct ShiftPush {
  StatePush states;
  uint32_t channels, x_at, x_stride, out_at;
};
struct ConvPush {
  StatePush states;
  uint32_t channels, width, dilation, x_at, x_stride, weight_at, bias_at, out_at;
};
struct PoolPush {
  StatePush states;
  uint32_t d, block, x_at, x_stride, gates_at, gates_stride, offsets_at, out_at;
};
struct ScanPush {
  StatePush states;
  uint32_t rows, d, per_group, x_at, x_stride, dt_at, dt_stride, b_at, b_stride, c_at, c_stride, a_at, skip_at, out_at;
};
struct DeltaPush {
  StatePush states;
  uint32_t groups, heads, d, tiled_heads;
  float lowest_decay;
  uint32_t q_at, q_stride, k_at, k_stride, v_at, v_stride, dt_at, dt_stride, beta_at, beta_stride, a_at, out_at;
};
struct WkvPush {
  StatePush states;
  uint32_t heads, r_at, r_stride, k_at, k_stride, v_at, v_stride, w_at, w_stride;
  uint32_t first_at, a_at, a_stride, b_at, b_stride, out_at, bonus_at;
};

// The operands and push constants common to all of these operations.
struct StateOperands {
  Operand step, slots;
  StatePush push;
};

StateOperands state_operands(VulkanStream& stream, const Launch& launch) {
  const CacheDesc& c = *launch.cache.desc;
  const StepLayout& step = *launch.step_layout;
  const Operand slots =
      stream.range(*launch.cache.buffer, launch.cache.offset,
                   sizeof(float) * static_cast<uint64_t>(c.slot_values * launch.cache.n_blocks), true);
  const StatePush push = {u32(static_cast<int64_t>(step.positions_at)),
                          u32(static_cast<int64_t>(step.sequences_at)),
                          u32(static_cast<int64_t>(step.tables_at(c.group))),
                          u32(step.capacity.blocks_per_sequence),
                          slots.at + u32(c.first_value),
                          u32(c.slot_values)};
  return {stream.step(launch), slots, push};
}

// The most sequences of a step with as many rows as x has.
uint32_t most_sequences(const Launch& launch, const TensorRef& x) {
  return std::min(rows_of(x), u32(launch.step_layout->capacity.sequences));
}

uint32_t stride_of(const TensorRef& tensor) { return u32(tensor.desc->row_stride); }

void token_shift(const Prepared&, const Launch& launch, Stream& s) {
  VulkanStream& stream = vulkan(s);
  const TensorRef& x = launch.inputs[0];
  const int64_t channels = x.desc->shape[1];
  const StateOperands state = state_operands(stream, launch);
  const Operand in = stream.read(x), to = stream.write(launch.outputs[0]);
  const ShiftPush push = {state.push, u32(channels), in.at, stride_of(x), to.at};
  stream.dispatch("token_shift", {}, {state.step, in, to, state.slots}, push,
                  {groups(channels, kChannels), rows_of(x)});
}

void short_conv(const Prepared&, const Launch& launch, Stream& s) {
  VulkanStream& stream = vulkan(s);
  const TensorRef &x = launch.inputs[0], &weight = launch.inputs[1], &bias = launch.inputs[2];
  const ShortConvParams& params = launch.param<ShortConvParams>();
  const int64_t channels = weight.desc->shape[0], width = weight.desc->shape[1];
  const StateOperands state = state_operands(stream, launch);
  const Operand in = stream.read(x), factors = stream.read(weight), to = stream.write(launch.outputs[0]);
  const Operand shift = bias ? stream.read(bias) : state.step;  // a binding needs some buffer
  const ConvPush push = {state.push, u32(channels), u32(width), u32(params.dilation), in.at, stride_of(x),
                         factors.at, shift.at,      to.at};
  stream.dispatch("short_conv", {bias ? 1u : 0u, params.silu ? 1u : 0u},
                  {state.step, in, factors, shift, to, state.slots}, push, {groups(channels, kChannels), rows_of(x)});
}

void gated_pool(const Prepared&, const Launch& launch, Stream& s) {
  VulkanStream& stream = vulkan(s);
  const TensorRef &x = launch.inputs[0], &gates = launch.inputs[1], &offsets = launch.inputs[2];
  const int64_t parts = x.desc->shape[1], d = x.desc->shape[2];
  const StateOperands state = state_operands(stream, launch);
  const Operand in = stream.read(x), from = stream.read(gates), to = stream.write(launch.outputs[0]);
  const Operand added = offsets ? stream.read(offsets) : state.step;
  const PoolPush push = {
      state.push, u32(d), u32(launch.param<GatedPoolParams>().block), in.at, stride_of(x), from.at, stride_of(gates),
      added.at,   to.at};
  stream.dispatch("gated_pool", {u32(parts), offsets ? 1u : 0u}, {state.step, in, from, added, to, state.slots}, push,
                  {groups(d, kChannels), most_sequences(launch, x)});
}

void selective_scan(const Prepared&, const Launch& launch, Stream& s) {
  constexpr uint32_t kLanes = 128, kValues = 4, kMostRowLanes = 64;  // kValues: of a lane, if possible
  VulkanStream& stream = vulkan(s);
  const TensorRef &x = launch.inputs[0], &dt = launch.inputs[1], &b = launch.inputs[2], &c = launch.inputs[3];
  const TensorRef &a = launch.inputs[4], &skip = launch.inputs[5];
  const int64_t h = x.desc->shape[1], d = x.desc->shape[2], n = b.desc->shape[2];
  const StateOperands state = state_operands(stream, launch);
  const Operand from = stream.read(x), times = stream.read(dt), in = stream.read(b), out = stream.read(c);
  const Operand rates = stream.read(a), factors = skip ? stream.read(skip) : state.step;
  const Operand to = stream.write(launch.outputs[0]);
  const ScanPush push = {state.push, u32(h * d),   u32(d),   u32(h / b.desc->shape[1]),
                         from.at,    stride_of(x), times.at, stride_of(dt),
                         in.at,      stride_of(b), out.at,   stride_of(c),
                         rates.at,   factors.at,   to.at};
  const uint32_t lanes = std::min(kMostRowLanes, std::bit_ceil(groups(n, kValues)));
  const uint32_t rows = kLanes / lanes;
  const bool per_value = a.desc->shape.rank == 2;
  stream.dispatch("selective_scan", {u32(n), lanes, groups(n, lanes), rows, per_value ? 1u : 0u, skip ? 1u : 0u},
                  {state.step, from, times, in, out, rates, factors, to, state.slots}, push,
                  {groups(h * d, rows), most_sequences(launch, x)}, static_cast<double>(h * d * n) * 4 * rows_of(x));
}

// The constants of glsl/columns.glsl, for columns of n values and `decays` decays per token.
constexpr uint32_t kTileColumns = 32, kParts = 8, kMostTile = 16, kMostDecays = 2048;
std::vector<uint32_t> column_constants(int64_t n, int64_t decays) {
  const uint32_t tile = std::clamp<uint32_t>(kMostDecays / u32(decays), 1, kMostTile);
  return {u32(n), groups(n, kParts), tile, tile * u32(decays)};
}

// q of delta_rule and r of wkv are [T, heads, n]. The decays of a token are in shared memory.
bool supports_columns(const OpDesc& op, const Device&) { return op.inputs[0]->shape[2] <= kMostDecays; }

void delta_rule(const Prepared&, const Launch& launch, Stream& s) {
  VulkanStream& stream = vulkan(s);
  const TensorRef &q = launch.inputs[0], &k = launch.inputs[1], &v = launch.inputs[2], &dt = launch.inputs[3];
  const TensorRef &beta = launch.inputs[4], &a = launch.inputs[5];
  const int64_t n = q.desc->shape[2], h = v.desc->shape[1], d = v.desc->shape[2];
  const DeltaRuleParams& params = launch.param<DeltaRuleParams>();
  const StateOperands state = state_operands(stream, launch);
  const Operand queries = stream.read(q), keys = stream.read(k), values = stream.read(v), times = stream.read(dt);
  const Operand strengths = stream.read(beta), rates = stream.read(a), to = stream.write(launch.outputs[0]);
  DeltaPush push = {};
  push.states = state.push;
  push.groups = u32(q.desc->shape[1]);
  push.heads = u32(h);
  push.d = u32(d);
  push.tiled_heads = params.tiled_heads;
  push.lowest_decay = params.lowest_decay;
  push.q_at = queries.at, push.q_stride = stride_of(q);
  push.k_at = keys.at, push.k_stride = stride_of(k);
  push.v_at = values.at, push.v_stride = stride_of(v);
  push.dt_at = times.at, push.dt_stride = stride_of(dt);
  push.beta_at = strengths.at, push.beta_stride = stride_of(beta);
  push.a_at = rates.at;
  push.out_at = to.at;
  const bool per_channel = dt.desc->shape.rank == 3;
  std::vector<uint32_t> constants = column_constants(n, per_channel ? n : 1);
  constants.push_back(per_channel);
  stream.dispatch(
      "delta_rule", constants, {state.step, queries, keys, values, times, strengths, rates, to, state.slots}, push,
      {u32(h) * groups(d, kTileColumns), most_sequences(launch, q)}, static_cast<double>(h * n * d) * 4 * rows_of(q));
}

void wkv(const Prepared&, const Launch& launch, Stream& s) {
  VulkanStream& stream = vulkan(s);
  const TensorRef &r = launch.inputs[0], &k = launch.inputs[1], &v = launch.inputs[2], &w = launch.inputs[3];
  const TensorRef &first = launch.inputs[4], &read = launch.inputs[5], &write = launch.inputs[6];
  const int64_t h = r.desc->shape[1], n = r.desc->shape[2];
  const StateOperands state = state_operands(stream, launch);
  const Operand queries = stream.read(r), keys = stream.read(k), values = stream.read(v), times = stream.read(w);
  const Operand factors = stream.read(first), out = stream.write(launch.outputs[0]);
  const Operand bonus = stream.write(launch.outputs[1]);
  const bool seven = static_cast<bool>(read);
  const Operand a = seven ? stream.read(read) : state.step, b = seven ? stream.read(write) : state.step;
  WkvPush push = {};
  push.states = state.push;
  push.heads = u32(h);
  push.r_at = queries.at, push.r_stride = stride_of(r);
  push.k_at = keys.at, push.k_stride = stride_of(k);
  push.v_at = values.at, push.v_stride = stride_of(v);
  push.w_at = times.at, push.w_stride = stride_of(w);
  push.first_at = factors.at;
  if (seven) {
    push.a_at = a.at, push.a_stride = stride_of(read);
    push.b_at = b.at, push.b_stride = stride_of(write);
  }
  push.out_at = out.at;
  push.bonus_at = bonus.at;
  std::vector<uint32_t> constants = column_constants(n, n);
  constants.push_back(seven);
  stream.dispatch("wkv", constants, {state.step, queries, keys, values, times, factors, a, b, out, bonus, state.slots},
                  push, {u32(h) * groups(n, kTileColumns), most_sequences(launch, r)},
                  static_cast<double>(h * n * n) * 4 * rows_of(r));
}

}  // namespace

std::span<const OpRecord> recurrent_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kShortConv, supports_any, nothing_to_prepare, short_conv},
      {Op::kGatedPool, supports_any, nothing_to_prepare, gated_pool},
      {Op::kTokenShift, supports_any, nothing_to_prepare, token_shift},
      {Op::kSelectiveScan, supports_any, nothing_to_prepare, selective_scan},
      {Op::kDeltaRule, supports_columns, nothing_to_prepare, delta_rule},
      {Op::kWkv, supports_columns, nothing_to_prepare, wkv},
  };
  return kRecords;
}

}  // namespace infer::vulkan
