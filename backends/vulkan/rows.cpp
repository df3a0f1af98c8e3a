// embed, select_rows, top_k.
#include "backends/vulkan/shaders.h"
#include "backends/vulkan/vulkan_ops.h"
#include "ggml-like/error.h"

namespace infer::vulkan {
namespace {

constexpr int kLanes = 64;  // of the shaders, 16 values each in embed

std::string embed_shader(DataType type) { return concat("embed.", traits(type).name); }

struct EmbedPush {
  uint32_t d, tokens_at, row_begin, row_end, row_bytes, table_skip, out_at;
};
struct SelectPush {
  uint32_t d, outputs_at, x_at, x_stride, out_at;
};
struct TopKPush {
  uint32_t n, k, count_at, fixed_rows, x_at, x_stride, ids_at, values_at, sums_at;
};

bool supports_embed(const OpDesc& op, const Device&) {
  return find_shader(embed_shader(op.inputs[0]->type)) != nullptr;
}

void embed(const Prepared&, const Launch& launch, Stream& s) {
  VulkanStream& stream = vulkan(s);
  const TensorRef &table = launch.inputs[0], &out = launch.outputs[0];
  const int64_t d = table.desc->shape[1];
  const Operand to = stream.write(out);
  for (const WeightRange& range : weight_ranges(stream, table, table.desc->shape[0], d)) {
    const EmbedPush push = {u32(d),
                            u32(static_cast<int64_t>(launch.step_layout->tokens_at)),
                            range.row_begin,
                            range.row_end,
                            range.row_bytes,
                            4 * range.operand.at + range.operand.skip,
                            to.at};
    stream.dispatch(embed_shader(table.desc->type), {}, {stream.step(launch), range.operand, to}, push,
                    {groups(d, 16 * kLanes), rows_of(out)});
  }
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

void top_k(const Prepared&, const Launch& launch, Stream& s) {
  VulkanStream& stream = vulkan(s);
  const TensorRef& x = launch.inputs[0];
  const Operand in = stream.read(x), ids = stream.write(launch.outputs[0]), values = stream.write(launch.outputs[1]),
                sums = stream.write(launch.outputs[2]);
  const auto [count_at, fixed] = row_count(*x.desc);
  const TopKPush push = {u32(x.desc->shape[1]),
                         u32(launch.param<TopKParams>().k),
                         count_at,
                         fixed,
                         in.at,
                         u32(x.desc->row_stride),
                         ids.at,
                         values.at,
                         sums.at};
  stream.dispatch("top_k", {}, {stream.step(launch), in, ids, values, sums}, push, {rows_of(x)});
}

}  // namespace

std::span<const OpRecord> rows_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kEmbed, supports_embed, nothing_to_prepare, embed},
      {Op::kSelectRows, supports_any, nothing_to_prepare, select_rows},
      {Op::kTopK, supports_any, nothing_to_prepare, top_k},
  };
  return kRecords;
}

}  // namespace infer::vulkan
