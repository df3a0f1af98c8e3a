// rope_table, rope and position_factor.
#include "backends/cuda/cuda_ops.h"
#include "backends/cuda/kernel.h"
#include "backends/cuda/launch.h"
#include "ggml-like/rope_angles.h"

namespace infer::cuda {
namespace {

constexpr unsigned kThreads = 128;

struct PreparedTable final : Prepared {
  std::unique_ptr<Buffer> steps;  // [pairs], F64: angle per position
  float magnitude = 1;
};

// Writes magnitude times cosine and sine of position * step. Double precision suffices for the whole turns of any
// position.
__global__ void rope_table_kernel(RowCount count, int pairs, int period, const int32_t* positions, const double* steps,
                                  const float* factors, float magnitude, float* out) {
  const int pair = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (pair >= pairs) return;
  const double step = factors ? steps[pair] / factors[pair] : steps[pair];
  const int32_t rows = count.rows();
  for (int64_t token = blockIdx.y; token < rows; token += gridDim.y) {
    double sine, cosine;
    sincos(positions[token] / period * period * step, &sine, &cosine);
    float* const to = out + (token * pairs + pair) * 2;
    to[0] = static_cast<float>(cosine) * magnitude;
    to[1] = static_cast<float>(sine) * magnitude;
  }
}

struct RopeShape {
  RowCount count;
  int heads, dim, pairs;
  int64_t x_stride;
  bool interleaved;
};

// Rotates the first 2 * pairs dimensions of each head by the angles of the table, [T, pairs, 2]; copies the rest.
__global__ void rope_kernel(RopeShape shape, const float* x, const float* table, float* out) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), n = shape.heads * shape.dim;
  if (i >= n) return;
  const int at = i % shape.dim, n_dims = 2 * shape.pairs;
  const bool second = shape.interleaved ? at % 2 == 1 : at >= shape.pairs;
  const int pair = shape.interleaved ? at / 2 : second ? at - shape.pairs : at;
  const int partner = i + (shape.interleaved ? (second ? -1 : 1) : second ? -shape.pairs : shape.pairs);
  const int32_t rows = shape.count.rows();
  for (int64_t token = blockIdx.y; token < rows; token += gridDim.y) {
    const float* const from = x + token * shape.x_stride;
    float y = from[i];
    if (at < n_dims) {
      const float* const angle = table + (token * shape.pairs + pair) * 2;
      const float side = from[partner] * angle[1];
      y = fmaf(y, angle[0], second ? side : -side);
    }
    out[token * n + i] = y;
  }
}

__global__ void position_factor_kernel(RowCount count, PositionFactorParams params, const int32_t* positions,
                                       float* out) {
  const int64_t token = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (token >= count.rows()) return;
  const int64_t intervals = (int64_t{positions[token]} + params.offset) / params.interval;
  out[token] = 1.0f + params.scale * logf(static_cast<float>(1 + intervals));
}

dim3 grid_of(int64_t n, int64_t rows) {
  return {blocks_for(n, kThreads), static_cast<unsigned>(std::min(rows, kMostBlocksY)), 1};
}

const int32_t* positions_of(const Launch& launch) { return step_address(launch) + launch.step_layout->positions_at; }

std::unique_ptr<Prepared> prepare_rope_table(const OpDesc& op, Device& device) {
  auto prepared = std::make_unique<PreparedTable>();
  const RopeAngles angles = rope_angles(op.param<RopeTableParams>(), {});  // the kernel divides by the factors
  prepared->magnitude = angles.magnitude;
  const size_t bytes = angles.step.size() * sizeof(double);
  prepared->steps = device.allocate(bytes);
  const std::unique_ptr<Stream> stream = device.create_stream();
  stream->upload(*prepared->steps, 0, angles.step.data(), bytes);
  stream->synchronize();
  return prepared;
}

void rope_table(const Prepared& p, const Launch& launch, Stream& stream) {
  const auto& prepared = static_cast<const PreparedTable&>(p);
  const TensorRef& out = launch.outputs[0];
  const int pairs = static_cast<int>(out.desc->shape[1]);
  const auto* steps = reinterpret_cast<const double*>(static_cast<const CudaBuffer&>(*prepared.steps).data());
  launch_kernel(cuda_stream(stream), {grid_of(pairs, rows_of(out)), kThreads}, rope_table_kernel,
                row_count(launch, *out.desc), pairs, launch.param<RopeTableParams>().period, positions_of(launch),
                steps, address<const float>(launch.inputs[0]), prepared.magnitude, address<float>(out));
}

void rope(const Prepared&, const Launch& launch, Stream& stream) {
  const RopeParams& params = launch.param<RopeParams>();
  const TensorRef& x = launch.inputs[0];
  const RopeShape shape = {row_count(launch, *x.desc),
                           static_cast<int>(x.desc->shape[1]),
                           static_cast<int>(x.desc->shape[2]),
                           params.n_dims / 2,
                           x.desc->row_stride,
                           params.interleaved};
  launch_kernel(cuda_stream(stream), {grid_of(int64_t{shape.heads} * shape.dim, rows_of(x)), kThreads}, rope_kernel,
                shape, address<const float>(x), address<const float>(launch.inputs[1]),
                address<float>(launch.outputs[0]));
}

void position_factor(const Prepared&, const Launch& launch, Stream& stream) {
  const TensorRef& out = launch.outputs[0];
  launch_kernel(cuda_stream(stream), {dim3(blocks_for(rows_of(out), kThreads)), kThreads}, position_factor_kernel,
                row_count(launch, *out.desc), launch.param<PositionFactorParams>(), positions_of(launch),
                address<float>(out));
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

}  // namespace infer::cuda
