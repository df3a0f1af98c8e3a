// slice and concat.
#include "backends/vulkan/vulkan_ops.h"

namespace infer::vulkan {
namespace {

struct SlicePush {
  uint32_t n, count_at, fixed_rows, x_at, x_stride, out_at, width, begin, count;
};
struct ConcatPush {
  uint32_t n, count_at, fixed_rows, a_at, a_stride, b_at, b_stride, b_step, out_at, m, width;
};

void slice(const Prepared&, const Launch& launch, Stream& s) {
  VulkanStream& stream = vulkan(s);
  const SliceParams& p = launch.param<SliceParams>();
  const TensorRef &x = launch.inputs[0], &out = launch.outputs[0];
  const Operand in = stream.read(x), to = stream.write(out);
  const int64_t n = out.desc->shape.row_elements();
  const auto [count_at, fixed] = row_count(*x.desc);
  const SlicePush push = {
      u32(n),       count_at,    fixed, in.at, u32(x.desc->row_stride), to.at, u32(x.desc->shape.last()),
      u32(p.begin), u32(p.count)};
  stream.dispatch("slice", {}, {stream.step(launch), in, to}, push, {groups(n, kLanes), rows_of(x)});
}

void join_columns(const Prepared&, const Launch& launch, Stream& s) {
  VulkanStream& stream = vulkan(s);
  const TensorRef &a = launch.inputs[0], &b = launch.inputs[1], &out = launch.outputs[0];
  const Operand left = stream.read(a), right = stream.read(b), to = stream.write(out);
  const int64_t n = out.desc->shape.row_elements(), width = b.desc->shape[2];
  const auto [count_at, fixed] = row_count(*a.desc);
  const ConcatPush push = {u32(n),
                           count_at,
                           fixed,
                           left.at,
                           u32(a.desc->row_stride),
                           right.at,
                           u32(b.desc->row_stride),
                           b.desc->shape[1] == 1 ? 0 : u32(width),
                           to.at,
                           u32(a.desc->shape[2]),
                           u32(width)};
  stream.dispatch("concat", {}, {stream.step(launch), left, right, to}, push, {groups(n, kLanes), rows_of(a)});
}

}  // namespace

std::span<const OpRecord> columns_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kSlice, supports_any, nothing_to_prepare, slice},
      {Op::kConcat, supports_any, nothing_to_prepare, join_columns},
  };
  return kRecords;
}

}  // namespace infer::vulkan
