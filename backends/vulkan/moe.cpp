// moe_route and moe_combine.
#include <algorithm>
#include <bit>

#include "backends/vulkan/vulkan_ops.h"

namespace infer::vulkan {
namespace {

constexpr uint32_t kMaxRoutedExperts = 1024;  // of moe_route.comp

// The shader's capacity for experts, a power of two, and its shared memory in bytes.
uint32_t room_for(const TensorDesc& logits) { return std::bit_ceil(std::max(u32(logits.shape[1]), 64u)); }
uint32_t shared_bytes(uint32_t experts) { return 20 * experts + 512; }

struct RoutePush {
  uint32_t experts, used, groups, groups_used, count_at, fixed_rows, logits_at, logits_stride, bias_at, ids_at,
      weights_at, experts_at, tokens_at;
  float scale;
};
struct CombinePush {
  uint32_t d, used, count_at, fixed_rows, y_at, weights_at, out_at;
};

// Row i belongs to token i only where rows are tokens, so only then is its id known.
bool supports_moe_route(const OpDesc& op, const Device& device) {
  const TensorDesc& logits = *op.inputs[0];
  return (!op.inputs[2] || logits.rows == RowKind::kTokens) && logits.shape[1] <= kMaxRoutedExperts &&
         shared_bytes(room_for(logits)) <= context_of(device).max_shared();
}

void moe_route(const Prepared&, const Launch& launch, Stream& s) {
  VulkanStream& stream = vulkan(s);
  const MoeRouteParams& params = launch.param<MoeRouteParams>();
  const TensorRef &x = launch.inputs[0], &bias = launch.inputs[1], &experts = launch.inputs[2];
  const Operand step = stream.step(launch), in = stream.read(x), ids = stream.write(launch.outputs[0]),
                weights = stream.write(launch.outputs[1]);
  const Operand shift = bias ? stream.read(bias) : step, table = experts ? stream.read(experts) : step;
  const auto [count_at, fixed] = row_count(*x.desc);
  const RoutePush push = {u32(x.desc->shape[1]),
                          u32(params.n_used),
                          u32(params.n_groups),
                          u32(params.groups_used),
                          count_at,
                          fixed,
                          in.at,
                          u32(x.desc->row_stride),
                          shift.at,
                          ids.at,
                          weights.at,
                          table.at,
                          u32(static_cast<int64_t>(launch.step_layout->tokens_at)),
                          params.scale};
  stream.dispatch("moe_route",
                  {static_cast<uint32_t>(params.gating), bias ? 1u : 0u, params.normalize ? 1u : 0u, room_for(*x.desc),
                   experts ? 1u : 0u},
                  {step, in, shift, ids, weights, table}, push, {rows_of(x)});
}

void moe_combine(const Prepared&, const Launch& launch, Stream& s) {
  VulkanStream& stream = vulkan(s);
  const TensorRef &y = launch.inputs[0], &weights = launch.inputs[1], &out = launch.outputs[0];
  const Operand in = stream.read(y), factors = stream.read(weights), to = stream.write(out);
  const int64_t d = y.desc->shape[2];
  const auto [count_at, fixed] = row_count(*y.desc);
  const CombinePush push = {u32(d), u32(y.desc->shape[1]), count_at, fixed, in.at, factors.at, to.at};
  stream.dispatch("moe_combine", {}, {stream.step(launch), in, factors, to}, push, {groups(d, 64), rows_of(y)});
}

}  // namespace

std::span<const OpRecord> moe_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kMoeRoute, supports_moe_route, nothing_to_prepare, moe_route},
      {Op::kMoeCombine, supports_any, nothing_to_prepare, moe_combine},
  };
  return kRecords;
}

}  // namespace infer::vulkan
