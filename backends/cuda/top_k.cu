// top_k.
#include "backends/cuda/cuda_ops.h"
#include "backends/cuda/launch.h"
#include "backends/cuda/select.cuh"

namespace infer::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr int64_t kPart = 4096;  // logits that a block of the first kernel takes

struct TopKShape {
  RowCount count;
  int64_t n, x_stride;
  int k, parts;
};

// The best of a part, and the sum of exp(logit - best logit) over it: [row, part].
struct Parts {
  Candidate* best;  // [row, part, k]
  float* sum;       // [row, part]
};

__global__ void top_k_parts_kernel(TopKShape s, const float* x, Parts parts) {
  const int64_t row = blockIdx.y;
  if (row >= s.count.rows()) return;
  const int64_t first = blockIdx.x * kPart, n = s.n - first < kPart ? s.n - first : kPart;
  const int64_t at = row * s.parts + blockIdx.x;
  const float* const logits = x + row * s.x_stride + first;
  const auto read = [&](int64_t i) { return Candidate{logits[i], static_cast<uint32_t>(first + i)}; };
  const auto put = [&](int place, const Candidate& c) { parts.best[at * s.k + place] = c; };
  const float best = select_best(n, s.k, read, put).value;
  float sum = 0;
  for (int64_t i = threadIdx.x; i < n; i += kThreads) sum += logits[i] != -INFINITY ? expf(logits[i] - best) : 0.0f;
  sum = block_sum(sum);
  if (threadIdx.x == 0) parts.sum[at] = sum;
}

__global__ void top_k_kernel(TopKShape s, Parts parts, int32_t* ids, float* values, float* log_sums) {
  const int64_t row = blockIdx.x;
  if (row >= s.count.rows()) return;
  const Candidate* const candidates = parts.best + row * s.parts * s.k;
  const auto read = [&](int64_t i) { return candidates[i]; };
  const auto put = [&](int place, const Candidate& c) {
    ids[row * s.k + place] = static_cast<int32_t>(c.index);
    values[row * s.k + place] = c.value;
  };
  const float best = select_best(static_cast<int64_t>(s.parts) * s.k, s.k, read, put).value;
  float sum = 0;
  for (int part = static_cast<int>(threadIdx.x); part < s.parts; part += kThreads) {
    const float of_part = parts.sum[row * s.parts + part];
    if (of_part != 0) sum += of_part * expf(candidates[static_cast<int64_t>(part) * s.k].value - best);
  }
  sum = block_sum(sum);
  // No sum: every logit is -infinity.
  if (threadIdx.x == 0) log_sums[row] = sum == 0 ? NAN : best + logf(sum);
}

int parts_of(const TensorDesc& x) { return static_cast<int>(blocks_for(x.shape[1], kPart)); }

std::unique_ptr<Prepared> prepare_top_k(const OpDesc& op, Device&) {
  auto prepared = std::make_unique<Prepared>();
  const TensorDesc& x = *op.inputs[0];
  const size_t parts = static_cast<size_t>(x.shape[0] * parts_of(x)), k = static_cast<size_t>(op.param<TopKParams>().k);
  prepared->scratch_bytes = parts * (k * sizeof(Candidate) + sizeof(float));
  return prepared;
}

void top_k(const Prepared&, const Launch& launch, Stream& s) {
  CudaStream& stream = cuda_stream(s);
  const TensorRef& x = launch.inputs[0];
  const TopKShape shape = {row_count(launch, *x.desc), x.desc->shape[1], x.desc->row_stride,
                           launch.param<TopKParams>().k, parts_of(*x.desc)};
  auto* const best = reinterpret_cast<Candidate*>(scratch_address(launch));
  const Parts parts = {best, reinterpret_cast<float*>(best + rows_of(x) * shape.parts * shape.k)};
  const auto rows = static_cast<unsigned>(rows_of(x));
  launch_kernel(stream, {dim3(static_cast<unsigned>(shape.parts), rows), kThreads}, top_k_parts_kernel, shape,
                address<const float>(x), parts);
  launch_kernel(stream, {dim3(rows), kThreads}, top_k_kernel, shape, parts, address<int32_t>(launch.outputs[0]),
                address<float>(launch.outputs[1]), address<float>(launch.outputs[2]));
}

}  // namespace

std::span<const OpRecord> top_k_ops() {
  static constexpr OpRecord kRecords[] = {{Op::kTopK, has_grid, prepare_top_k, top_k}};
  return kRecords;
}

}  // namespace infer::cuda
