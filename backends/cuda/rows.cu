// embed, step_hidden and select_rows.
#include <algorithm>

#include "backends/cuda/cuda_ops.h"
#include "backends/cuda/formats.cuh"
#include "backends/cuda/launch.h"

namespace infer::cuda {
namespace {

constexpr unsigned kThreads = 256;

// Row i of the result is row rows[i] of x, or row i without rows.
__global__ void copy_rows_kernel(RowCount count, int64_t d, int64_t x_stride, const int32_t* rows, const float* x,
                                 float* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= d) return;
  const int32_t n = count.rows();
  for (int64_t row = blockIdx.y; row < n; row += gridDim.y) {
    out[row * d + i] = x[(rows ? rows[row] : row) * x_stride + i];
  }
}

constexpr int kGroup = 16;  // values that a thread unpacks

// Row t of the result is row ids[t] of the table.
template <typename W>
__global__ void embed_kernel(RowCount count, int64_t d, int64_t row_bytes, const int32_t* ids, const uint8_t* table,
                             float* out) {
  const int64_t g = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (g >= d / kGroup) return;
  constexpr int kGroups = W::kValues / kGroup;  // of a block
  const int32_t n = count.rows();
  for (int64_t row = blockIdx.y; row < n; row += gridDim.y) {
    const auto* blocks = reinterpret_cast<const typename W::Block*>(table + ids[row] * row_bytes);
    const Codes c = W::load(blocks[g / kGroups], static_cast<int>(g % kGroups));
    INFER_UNROLL
    for (int i = 0; i < kGroup; ++i) {
      const uint32_t byte = c.word[i / 4] >> (8 * (i % 4)) & 255u;
      const int code = W::kSigned ? static_cast<int8_t>(byte) : static_cast<int>(byte) - W::kBias;
      const float value = c.scale * static_cast<float>(code);
      out[row * d + g * kGroup + i] = W::kOffset ? value + c.offset : value;
    }
  }
}
template <typename W>
__global__ void float_embed_kernel(RowCount count, int64_t d, int64_t row_bytes, const int32_t* ids,
                                   const uint8_t* table, float* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= d) return;
  const int32_t n = count.rows();
  for (int64_t row = blockIdx.y; row < n; row += gridDim.y) out[row * d + i] = W::load(table + ids[row] * row_bytes, i);
}

bool supports_embed(const OpDesc& op, const Device&) {
  const DataType type = op.inputs[0]->type;
  return is_weight_type(type) || type == DataType::kQ8_K;
}

void embed(const Prepared&, const Launch& launch, Stream& s) {
  CudaStream& stream = cuda_stream(s);
  const TensorRef &table = launch.inputs[0], &out = launch.outputs[0];
  const int64_t d = table.desc->shape[1];
  const StepLayout& layout = *launch.step_layout;
  const bool by_token = launch.param<EmbedParams>().rows == RowsBy::kToken;
  const int32_t* const ids = step_address(launch) + (by_token ? layout.tokens_at : layout.positions_at);
  const DataType type = table.desc->type;
  const auto start = [&](auto kernel, int64_t items) {
    const dim3 grid(blocks_for(items, kThreads), static_cast<unsigned>(std::min(rows_of(out), kMostBlocksY)));
    launch_kernel(stream, {grid, kThreads}, kernel, row_count(launch, *out.desc), d,
                  static_cast<int64_t>(row_bytes(type, d)), ids, address<const uint8_t>(table), address<float>(out));
  };
  if (with_float_format(type, [&](auto w) { start(float_embed_kernel<decltype(w)>, d); })) return;
  if (type == DataType::kQ8_K) return start(embed_kernel<Q8_K>, d / kGroup);
  with_quantized_format(type, [&](auto w) { start(embed_kernel<decltype(w)>, d / kGroup); });
}

void copy_rows(const Launch& launch, Stream& stream, const int32_t* rows, const float* x, int64_t x_stride) {
  const TensorRef& out = launch.outputs[0];
  const int64_t d = out.desc->shape[1];
  const dim3 grid(blocks_for(d, kThreads), static_cast<unsigned>(std::min(rows_of(out), kMostBlocksY)));
  launch_kernel(cuda_stream(stream), {grid, kThreads}, copy_rows_kernel, row_count(launch, *out.desc), d, x_stride,
                rows, x, address<float>(out));
}

void step_hidden(const Prepared&, const Launch& launch, Stream& stream) {
  const auto* hidden = reinterpret_cast<const float*>(step_address(launch) + launch.step_layout->hidden_at);
  copy_rows(launch, stream, nullptr, hidden, launch.outputs[0].desc->shape[1]);
}

void select_rows(const Prepared&, const Launch& launch, Stream& stream) {
  const TensorRef& x = launch.inputs[0];
  copy_rows(launch, stream, step_address(launch) + launch.step_layout->output_rows_at, address<const float>(x),
            x.desc->row_stride);
}

}  // namespace

std::span<const OpRecord> rows_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kEmbed, supports_embed, nothing_to_prepare, embed},
      {Op::kStepHidden, supports_any, nothing_to_prepare, step_hidden},
      {Op::kSelectRows, supports_any, nothing_to_prepare, select_rows},
  };
  return kRecords;
}

}  // namespace infer::cuda
