// A block of four warps multiplies 64 rows of activations by 64 rows of weights, a warp 32 by 32. Both are fp16 in
// shared memory, 32 values of each row at a time; sums are F32. Rows of activations are scaled by powers of two that
// are divided out at the end.
#include "backends/cuda/matmul_tiled.h"

#include "backends/cuda/cuda_ops.h"
#include "backends/cuda/formats.cuh"
#include "backends/cuda/launch.h"

namespace infer::cuda {
namespace {

constexpr int kTile = 64, kWarpTile = 32;  // rows
constexpr unsigned kThreads = 128;
constexpr int kStep = 32;                 // values of a row in shared memory
constexpr int kGroup = 16;                // values that a thread loads
constexpr int kRowWords = kStep / 2 + 4;  // padded, so that the lanes of a warp read from different banks
constexpr int kLeastRows = 17;            // fewer are multiplied faster one weight row at a time

struct HalfRows {
  uint16_t* values;  // [rows, k]
  float* factors;    // [rows]: what each row has to be multiplied by
};

// Scales each row by a power of two that makes its largest magnitude at least 2^14, so that no row overflows or
// vanishes. A row is not scaled if it has a NaN or an infinity, or only zeros and denormals. A block per row.
__global__ void to_half_kernel(RowCount count, int64_t k, int64_t x_stride, const float* x, HalfRows out) {
  const int64_t row = blockIdx.x;
  if (row >= count.rows()) return;
  const float* const from = x + row * x_stride;
  uint32_t most = 0;
  for (int64_t i = threadIdx.x; i < k; i += kThreads) {
    const uint32_t bits = __float_as_uint(from[i]) & 0x7fffffffu;
    most = bits > most ? bits : most;
  }
  // As floats, magnitudes have the order of their bits, and NaN is found on its own.
  const bool nan = __syncthreads_or(most > 0x7f800000u);
  const uint32_t exponent = nan ? 255u : __float_as_uint(block_max(__uint_as_float(most))) >> 23;
  const uint32_t power = exponent == 0 || exponent == 255 ? 127u : 268u - exponent < 253u ? 268u - exponent : 253u;
  const float factor = __uint_as_float(power << 23);
  for (int64_t i = threadIdx.x; i < k; i += kThreads) out.values[row * k + i] = float_to_half(from[i] * factor);
  if (threadIdx.x == 0) out.factors[row] = __uint_as_float((254u - power) << 23);
}

struct TiledShape {
  RowCount count;
  int64_t n, k, row_bytes;
};

struct TileRoom {
  uint32_t weights[kTile][kRowWords], x[kTile][kRowWords];
};

// Weights that may exceed the range of fp16 are left out of the tile of their step. If there are any (real models have
// none), a tile of only those follows, times 2^-14: with fp16 scales and codes of 8 bits no weight exceeds 2^29.
constexpr float kLargest = 65504.0f, kLargeFactor = 0x1p-14f;
__device__ inline bool is_large(const Codes& c) { return fmaf(fabsf(c.scale), 128.0f, fabsf(c.offset)) > kLargest; }

template <typename W>
__device__ void put_weights(uint32_t* to, const Codes& c, float factor) {
  const float scale = c.scale * factor, offset = c.offset * factor;
  for (int i = 0; i < kGroup / 2; ++i) {
    float pair[2];
    for (int j = 0; j < 2; ++j) {
      const uint32_t byte = c.word[i / 2] >> (8 * (2 * (i % 2) + j)) & 255u;
      const int code = W::kSigned ? static_cast<int8_t>(byte) : static_cast<int>(byte) - W::kBias;
      pair[j] = fmaf(scale, static_cast<float>(code), offset);
    }
    to[i] = pack_halves(pair[0], pair[1]);
  }
}
__device__ inline void put_zeros(uint32_t* to) {
  for (int i = 0; i < kGroup / 2; ++i) to[i] = 0;
}

// Sums of a warp: [16 rows of x][8 rows of weights] each.
struct Sums {
  float of[2][4][4];
};

__device__ inline void multiply_tiles(const TileRoom& room, int x_first, int w_first, Sums& sums) {
  const int lane = static_cast<int>(threadIdx.x % kWarp), g = lane / 4, t = lane % 4;
  for (int part = 0; part < kStep / 16; ++part) {
    const int at = 8 * part + t;
    uint32_t a[2][4], b[4][2];
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 4; ++j) a[i][j] = room.x[x_first + 16 * i + 8 * (j % 2) + g][at + 4 * (j / 2)];
    }
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 2; ++j) b[i][j] = room.weights[w_first + 8 * i + g][at + 4 * j];
    }
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 4; ++j) multiply_add(sums.of[i][j], a[i], b[j]);
    }
  }
}
__device__ inline void scale_sums(Sums& sums, float factor) {
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 4; ++j) {
      for (float& x : sums.of[i][j]) x *= factor;
    }
  }
}

__device__ inline void store_sums(const TiledShape& s, const Sums& sums, int64_t x_first, int64_t w_first,
                                  const float* factors, const float* bias, float* out) {
  const int lane = static_cast<int>(threadIdx.x % kWarp), g = lane / 4, t = lane % 4, rows = s.count.rows();
  for (int i = 0; i < 2; ++i) {
    for (int lower = 0; lower < 2; ++lower) {
      const int64_t x_row = x_first + 16 * i + 8 * lower + g;
      if (x_row >= rows) continue;
      const float factor = factors[x_row];
      for (int j = 0; j < 4; ++j) {
        for (int c = 0; c < 2; ++c) {
          const int64_t row = w_first + 8 * j + 2 * t + c;
          if (row >= s.n) continue;
          const float y = sums.of[i][j][2 * lower + c] * factor;
          out[x_row * s.n + row] = bias ? y + bias[row] : y;
        }
      }
    }
  }
}

template <typename W>
__global__ void tiled_kernel(TiledShape s, const uint8_t* weights, HalfRows x, const float* bias, float* out) {
  const int64_t first_x = static_cast<int64_t>(blockIdx.y) * kTile,
                first_row = static_cast<int64_t>(blockIdx.x) * kTile;
  const int64_t x_rows = s.count.rows();
  if (first_x >= x_rows) return;
  TileRoom& room = shared_memory<TileRoom>();
  // Loading: a thread takes 16 values of one row of each operand.
  const int load_row = static_cast<int>(threadIdx.x) / 2, load_group = static_cast<int>(threadIdx.x) % 2;
  const int64_t row = first_row + load_row, x_row = first_x + load_row;
  const bool has_row = row < s.n, has_x = x_row < x_rows;
  const auto* blocks = reinterpret_cast<const typename W::Block*>(weights + (has_row ? row : 0) * s.row_bytes);
  uint32_t *const to_weights = room.weights[load_row] + 8 * load_group, *const to_x = room.x[load_row] + 8 * load_group;
  const auto* from_x = reinterpret_cast<const uint32_t*>(x.values + (has_x ? x_row : 0) * s.k);
  constexpr int kGroups = W::kValues / kGroup;  // of a block
  // Multiplying: the warp's rows of the tiles.
  const int warp = static_cast<int>(threadIdx.x / kWarp), x_at = kWarpTile * (warp / 2), w_at = kWarpTile * (warp % 2);
  Sums sums = {};
  for (int64_t start = 0; start < s.k / kGroup; start += kStep / kGroup) {
    const int64_t group = start + load_group;
    const Codes c = W::load(blocks[group / kGroups], static_cast<int>(group % kGroups));
    const bool large = has_row && is_large(c);
    if (large || !has_row) put_zeros(to_weights);
    else put_weights<W>(to_weights, c, 1.0f);
    for (int i = 0; i < kGroup / 2; ++i) to_x[i] = has_x ? from_x[group * kGroup / 2 + i] : 0u;
    const bool any_large = __syncthreads_or(large);
    multiply_tiles(room, x_at, w_at, sums);
    __syncthreads();
    if (!any_large) continue;
    if (large) put_weights<W>(to_weights, c, kLargeFactor);
    else put_zeros(to_weights);
    scale_sums(sums, kLargeFactor);
    __syncthreads();
    multiply_tiles(room, x_at, w_at, sums);
    scale_sums(sums, 1 / kLargeFactor);
    __syncthreads();
  }
  store_sums(s, sums, first_x + x_at, first_row + w_at, x.factors, bias, out);
}

}  // namespace

bool is_tiled(const OpDesc& op, const Context& context) {
  return op.op == Op::kMatMul && !context.deterministic && traits(op.inputs[1]->type).quantized &&
         op.inputs[0]->shape[0] >= kLeastRows;
}

size_t tiled_scratch_bytes(const TensorDesc& x) {
  return static_cast<size_t>(x.shape.elements()) * sizeof(uint16_t) + static_cast<size_t>(x.shape[0]) * sizeof(float);
}

void multiply_tiled(const Launch& launch, CudaStream& stream) {
  const TensorRef &x = launch.inputs[0], &weight = launch.inputs[1];
  const TiledShape shape = {row_count(launch, *x.desc), weight.desc->shape[0], weight.desc->shape[1],
                            static_cast<int64_t>(row_bytes(weight.desc->type, weight.desc->shape[1]))};
  const int64_t rows = rows_of(x);
  auto* const halves = reinterpret_cast<uint16_t*>(scratch_address(launch));
  const HalfRows converted = {halves, reinterpret_cast<float*>(halves + rows * shape.k)};
  launch_kernel(stream, {dim3(static_cast<unsigned>(rows)), kThreads}, to_half_kernel, shape.count, shape.k,
                x.desc->row_stride, address<const float>(x), converted);
  const dim3 grid(blocks_for(shape.n, kTile), blocks_for(rows, kTile));
  with_quantized_format(weight.desc->type, [&](auto w) {
    launch_kernel(stream, {grid, kThreads}, tiled_kernel<decltype(w)>, shape, address<const uint8_t>(weight), converted,
                  address<const float>(launch.inputs[2]), address<float>(launch.outputs[0]));
  });
}

}  // namespace infer::cuda
