// select_positions and sparse_attention.
#include <algorithm>

#include "backends/vulkan/attention.h"
#include "ggml-like/error.h"

namespace infer::vulkan {
namespace {

struct ScoresPush {
  uint32_t heads, key_dim, q_at, q_stride, weights_at, weights_stride, cache_at, scores_at, scores_stride;
  uint32_t positions_at, sequences_at, table_at, table_stride;
  uint32_t stride, selections, count, block;
  uint32_t first_row;
  uint32_t flags;
};
struct PositionsPush {
  uint32_t scores_at, scores_stride, out_at, positions_at;
  uint32_t stride, selections, count, block, n_last;
  uint32_t unfinished;
  uint32_t first_row;
};

// The most entries of a context, and the most scores computed at a time, of one row of the selection or several.
constexpr int64_t kRowScores = 1 << 20, kMostScores = 1 << 22;

int64_t scores_at_once(const OpDesc& op) {
  const Shape& out = op.outputs[0]->shape;
  return std::min(out[0] * out[1] * kRowScores, kMostScores);
}

std::unique_ptr<Prepared> prepare_select_positions(const OpDesc& op, Device&) {
  auto prepared = std::make_unique<Prepared>();
  prepared->scratch_bytes = sizeof(float) * static_cast<size_t>(scores_at_once(op));
  return prepared;
}

struct SelectOperands {
  Operand inputs, queries, weights, cache, scores, out;
};

SelectOperands select_operands(VulkanStream& stream, const Prepared& prepared, const Launch& launch) {
  SelectOperands o;
  o.inputs = stream.step(launch);
  o.queries = stream.read(launch.inputs[0]);
  o.weights = launch.inputs[1] ? stream.read(launch.inputs[1]) : o.inputs;  // a binding needs some buffer
  o.cache = cache_operand(stream, launch.cache, false);
  o.scores = stream.range(*launch.scratch.buffer, launch.scratch.offset, prepared.scratch_bytes, true);
  o.out = stream.write(launch.outputs[0]);
  return o;
}

ScoresPush scores_push(const Launch& launch, const SelectOperands& o, uint32_t entries) {
  const SelectParams& params = launch.param<SelectParams>();
  const CacheDesc& c = *launch.cache.desc;
  const TensorRef &q = launch.inputs[0], &weights = launch.inputs[1];
  const StepLayout& step = *launch.step_layout;
  ScoresPush push = {};
  push.heads = u32(q.desc->shape[1]);
  push.key_dim = u32(c.key_dim);
  push.q_at = o.queries.at;
  push.q_stride = u32(q.desc->row_stride);
  push.weights_at = o.weights.at;
  push.weights_stride = weights ? u32(weights.desc->row_stride) : 0;
  push.cache_at = o.cache.at;
  push.scores_at = o.scores.at;
  push.scores_stride = entries;
  push.positions_at = u32(static_cast<int64_t>(step.positions_at));
  push.sequences_at = u32(static_cast<int64_t>(step.sequences_at));
  push.table_at = table_at(launch);
  push.table_stride = u32(step.capacity.blocks_per_sequence);
  push.stride = u32(c.stride);
  push.selections = u32(launch.outputs[0].desc->shape[1]);
  push.count = u32(params.count);
  push.block = u32(params.block);
  push.flags = (params.sum_heads ? 1u : 0u) | (weights ? 2u : 0u) | u32(cache_type(c.key_type)) << 8;
  return push;
}

// Heads that the shader multiplies at a time: several for a sum, otherwise the one that selects.
uint32_t heads_at_once(const Context& context, const ScoresPush& push) {
  if (context.physical.is_software()) return 4;  // one pipeline
  return (push.flags & 1u) == 0 ? 1 : push.heads <= 4 ? 4 : 8;
}

// Rows are selections of tokens. Each range of them is scored, then selected from.
void select_positions(const Prepared& prepared, const Launch& launch, Stream& s) {
  VulkanStream& stream = vulkan(s);
  const Context& context = stream.context();
  const SelectParams& params = launch.param<SelectParams>();
  const CacheDesc& c = *launch.cache.desc;
  SelectOperands o = select_operands(stream, prepared, launch);
  const int64_t entries = int64_t{launch.step_layout->capacity.blocks_per_sequence} * kBlockTokens / c.stride;
  if (entries > kRowScores) {
    throw Error(ErrorCode::kUnsupported, concat("[", context.name(), "] expected a context of at most ", kRowScores,
                                                " index keys, found ", entries, ". Lower -c."));
  }
  ScoresPush scores = scores_push(launch, o, u32(entries));
  PositionsPush select = {o.scores.at,
                          scores.scores_stride,
                          o.out.at,
                          scores.positions_at,
                          scores.stride,
                          scores.selections,
                          scores.count,
                          scores.block,
                          u32(params.n_last),
                          params.unfinished ? 1u : 0u,
                          0};
  const int64_t rows = int64_t{rows_of(launch.outputs[0])} * scores.selections;
  const double work = 2.0 * static_cast<double>(entries) * scores.key_dim * (params.sum_heads ? scores.heads : 1);
  const int64_t fit = static_cast<int64_t>(std::min(context.max_work() / std::max(work, 1.0), 1e9));
  const int64_t most = context.physical.properties.limits.maxComputeWorkGroupCount[1];
  const int64_t range =
      std::clamp(fit, int64_t{1}, std::min(most, scores_at_once(launch.op) / std::max<int64_t>(entries, 1)));
  for (int64_t first = 0; first < rows; first += range) {
    const uint32_t count = u32(std::min(range, rows - first));
    scores.first_row = select.first_row = u32(first);
    o.scores.written = true;
    stream.dispatch("index_scores", {heads_at_once(context, scores), fixed_type(context, c.key_type)},
                    {o.inputs, o.queries, o.weights, o.cache, o.scores}, scores,
                    {std::min(groups(entries, 128), std::max(1024 / count, 4u)), count}, work * count);
    o.scores.written = false;
    stream.dispatch("select_positions", {}, {o.inputs, o.scores, o.out}, select, {count});
  }
}

void sparse_attention(const Prepared& prepared, const Launch& launch, Stream& s) {
  const SparseAttentionParams& params = launch.param<SparseAttentionParams>();
  AttentionInputs inputs;
  inputs.params = {.scale = params.scale, .window = params.window};
  inputs.blocks = launch.inputs[1];
  inputs.sinks = launch.inputs[2];
  inputs.log_sums = launch.outputs[1];
  inputs.block = params.block;
  attend(prepared, launch, vulkan(s), inputs);
}

}  // namespace

std::span<const OpRecord> sparse_attention_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kSelectPositions, supports_cache, prepare_select_positions, select_positions},
      {Op::kSparseAttention, supports_cache, prepare_attention, sparse_attention},
  };
  return kRecords;
}

}  // namespace infer::vulkan
