// embed, step_hidden, select_rows, top_k.
#include "backends/vulkan/shaders.h"
#include "backends/vulkan/vulkan_ops.h"
#include "ggml-like/error.h"

namespace infer::vulkan {
namespace {

std::string embed_shader(DataType type) { return concat("embed.", traits(type).name); }

struct EmbedPush {
  uint32_t d, rows_at, row_begin, row_end, row_bytes, table_skip, out_at;
};
struct StepHiddenPush {
  uint32_t d, hidden_at, out_at;
};
struct SelectPush {
  uint32_t d, outputs_at, x_at, x_stride, out_at;
};
struct TopKPartsPush {
  uint32_t n, k, n_parts, count_at, fixed_rows, x_at, x_stride, parts_at;
};
struct TopKPush {
  uint32_t k, n_parts, count_at, fixed_rows, parts_at, ids_at, values_at, sums_at;
};

bool supports_embed(const OpDesc& op, const Device&) {
  return find_shader(embed_shader(op.inputs[0]->type)) != nullptr;
}

std::unique_ptr<Prepared> prepare_embed(const OpDesc& op, Device& device) {
  return prepare_weight(op.inputs[0]->type, device);
}

void embed(const Prepared& prepared, const Launch& launch, Stream& s) {
  VulkanStream& stream = vulkan(s);
  const TensorRef &table = launch.inputs[0], &out = launch.outputs[0];
  const int64_t d = table.desc->shape[1];
  const bool by_token = launch.param<EmbedParams>().rows == RowsBy::kToken;
  const size_t rows_at = by_token ? launch.step_layout->tokens_at : launch.step_layout->positions_at;
  const Operand to = stream.write(out);
  for (const WeightRange& range : weight_ranges(stream, table, table.desc->shape[0], d)) {
    const EmbedPush push = {u32(d),
                            u32(static_cast<int64_t>(rows_at)),
                            range.row_begin,
                            range.row_end,
                            range.row_bytes,
                            4 * range.operand.at + range.operand.skip,
                            to.at};
    std::vector<Operand> operands = {stream.step(launch), range.operand, to};
    add_codebook(stream, prepared, operands);
    stream.dispatch(embed_shader(table.desc->type), {}, std::move(operands), push,
                    {groups(d, 16 * kLanes), rows_of(out)});
  }
}

void step_hidden(const Prepared&, const Launch& launch, Stream& s) {
  VulkanStream& stream = vulkan(s);
  const TensorRef& out = launch.outputs[0];
  const Operand to = stream.write(out);
  const StepHiddenPush push = {u32(out.desc->shape[1]), u32(static_cast<int64_t>(launch.step_layout->hidden_at)),
                               to.at};
  stream.dispatch("step_hidden", {}, {stream.step(launch), to}, push, {groups(push.d, kLanes), rows_of(out)});
}

void select_rows(const Prepared&, const Launch& launch, Stream& s) {
  VulkanStream& stream = vulkan(s);
  const TensorRef &x = launch.inputs[0], &out = launch.outputs[0];
  const int64_t d = x.desc->shape[1];
  const Operand in = stream.read(x), to = stream.write(out);
  const SelectPush push = {u32(d), u32(static_cast<int64_t>(launch.step_layout->output_rows_at)), in.at,
                           u32(x.desc->row_stride), to.at};
  stream.dispatch("select_rows", {}, {stream.step(launch), in, to}, push, {groups(d, kLanes), rows_of(out)});
}

constexpr int kTopKPart = 4096;  // logits that a workgroup of top_k_parts takes

std::unique_ptr<Prepared> prepare_top_k(const OpDesc& op, Device&) {
  auto prepared = std::make_unique<Prepared>();
  const Shape& x = op.inputs[0]->shape;
  const int64_t part_size = 2 * op.param<TopKParams>().k + 1;  // values, ids, sum
  prepared->scratch_bytes = static_cast<size_t>(4 * x[0] * groups(x[1], kTopKPart) * part_size);
  return prepared;
}

void top_k(const Prepared& prepared, const Launch& launch, Stream& s) {
  VulkanStream& stream = vulkan(s);
  const TensorRef& x = launch.inputs[0];
  const Operand step = stream.step(launch), in = stream.read(x), ids = stream.write(launch.outputs[0]),
                values = stream.write(launch.outputs[1]), sums = stream.write(launch.outputs[2]);
  Operand parts = stream.range(*launch.scratch.buffer, launch.scratch.offset, prepared.scratch_bytes, true);
  const auto [count_at, fixed] = row_count(*x.desc);
  const uint32_t n = u32(x.desc->shape[1]), k = u32(launch.param<TopKParams>().k), n_parts = groups(n, kTopKPart);
  const TopKPartsPush to_parts = {n, k, n_parts, count_at, fixed, in.at, u32(x.desc->row_stride), parts.at};
  stream.dispatch("top_k_parts", {}, {step, in, parts}, to_parts, {n_parts, rows_of(x)});
  parts.written = false;
  const TopKPush push = {k, n_parts, count_at, fixed, parts.at, ids.at, values.at, sums.at};
  stream.dispatch("top_k", {}, {step, parts, ids, values, sums}, push, {rows_of(x)});
}

}  // namespace

std::span<const OpRecord> rows_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kEmbed, supports_embed, prepare_embed, embed},
      {Op::kStepHidden, supports_any, nothing_to_prepare, step_hidden},
      {Op::kSelectRows, supports_any, nothing_to_prepare, select_rows},
      {Op::kTopK, supports_any, prepare_top_k, top_k},
  };
  return kRecords;
}

}  // namespace infer::vulkan
