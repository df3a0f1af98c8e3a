// Matmuls of many rows on tensor cores. A block of eight warps multiplies kTokens rows of activations by 128 rows of
// weights, kStep values at a time; both are fp16 in shared memory, sums are F32. Activations are converted once and
// copied asynchronously, three stages deep; weights are loaded two steps ahead in the file's format and unpacked one
// step ahead into the second of two tiles. Rows of activations are scaled by powers of two that are divided out at the
// end. Each expert has its own tiles, whose rows come from a list that is sorted on the device.
#include "backends/cuda/matmul_tiled.h"

#include <algorithm>

#include "backends/cuda/cuda_ops.h"
#include "backends/cuda/launch.h"
#include "backends/cuda/tile_weights.cuh"

namespace infer::cuda {
namespace {

constexpr int kRows = 128;  // of weights, in a tile
constexpr int kThreads = 256, kWarps = kThreads / static_cast<int>(kWarp);
constexpr int kStages = 3;             // tiles of activations
constexpr int kLeastRows = 17;         // fewer are faster with matmul_rows.cuh
constexpr int kFew = 32, kMany = 128;  // the sizes of kTokens
constexpr int kMostExperts = 1024;
constexpr int kMostSplits = 16, kLeastSteps = 8;  // blocks that share a tile, and steps of each

// ---- Activations ----

struct HalfRows {
  uint16_t* values;  // [rows, k]
  float* factors;    // [rows]: what each row has to be multiplied by
};

// Vector v of k values is at x + v / per_row * stride + v % per_row * k.
struct InputShape {
  RowCount count;
  int64_t per_row, k, stride;
};

// Scales each row by a power of two that makes its largest magnitude at least 2^14, so that no row overflows or
// vanishes. A row is not scaled if it has a NaN or an infinity, or only zeros and denormals. A block per row.
__global__ void to_half_kernel(InputShape s, const float* x, HalfRows out) {
  const int64_t row = blockIdx.x;
  if (row >= s.count.rows() * s.per_row) return;
  const float* const from = x + row / s.per_row * s.stride + row % s.per_row * s.k;
  uint32_t most = 0;
  for (int64_t i = threadIdx.x; i < s.k; i += kThreads) {
    const uint32_t bits = __float_as_uint(from[i]) & 0x7fffffffu;
    most = bits > most ? bits : most;
  }
  // The bits of magnitudes sort like the magnitudes; NaN is detected separately.
  const bool nan = __syncthreads_or(most > 0x7f800000u);
  const uint32_t exponent = nan ? 255u : __float_as_uint(block_max(__uint_as_float(most))) >> 23;
  const uint32_t power = exponent == 0 || exponent == 255 ? 127u : 268u - exponent < 253u ? 268u - exponent : 253u;
  const float factor = __uint_as_float(power << 23);
  for (int64_t i = threadIdx.x; i < s.k; i += kThreads) out.values[row * s.k + i] = float_to_half(from[i] * factor);
  if (threadIdx.x == 0) out.factors[row] = __uint_as_float((254u - power) << 23);
}

// ---- Vectors of experts ----

// kTokens or fewer vectors of one expert: order[first], ...
struct ExpertTile {
  int32_t expert, first, count;
};
// In scratch memory: the vectors in the order of their experts, and their tiles.
struct Groups {
  int32_t* order;  // [vectors]
  ExpertTile* tiles;
  int32_t* n_tiles;
};

struct ExpertShape {
  RowCount count;
  int experts, used, tile;
  const int32_t* ids;  // [tokens, used]; null: vector v is for expert v % used
  __device__ int expert(int v) const { return ids ? ids[v] : v % used; }
};

struct ExpertCounts {
  int count[kMostExperts];  // later the place of the expert's next vector
};

// One block counts the vectors of each expert, makes the tiles and sorts the vectors. The order within an expert does
// not change any result.
__global__ void group_experts_kernel(ExpertShape s, Groups out) {
  ExpertCounts& counts = shared_memory<ExpertCounts>();
  const int vectors = s.count.rows() * s.used, thread = static_cast<int>(threadIdx.x);
  for (int e = thread; e < s.experts; e += kThreads) counts.count[e] = 0;
  __syncthreads();
  for (int v = thread; v < vectors; v += kThreads) atomicAdd(&counts.count[s.expert(v)], 1);
  __syncthreads();
  if (thread == 0) {
    int first = 0, tiles = 0;
    for (int e = 0; e < s.experts; ++e) {
      const int n = counts.count[e];
      for (int at = 0; at < n; at += s.tile) out.tiles[tiles++] = {e, first + at, n - at < s.tile ? n - at : s.tile};
      counts.count[e] = first;
      first += n;
    }
    *out.n_tiles = tiles;
  }
  __syncthreads();
  for (int v = thread; v < vectors; v += kThreads) out.order[atomicAdd(&counts.count[s.expert(v)], 1)] = v;
}

// ---- The matmul ----

struct TiledShape {
  RowCount count;
  int64_t n, k, row_bytes;
  int splits;     // blocks that share a tile's steps
  Groups groups;  // of experts; order is null without them
  int per_input;  // vectors that share a row of activations
};

// The vectors of a block.
struct TilePlace {
  int64_t expert;
  int first, count;
  __device__ int vector(const TiledShape& s, int i) const {
    return s.groups.order ? s.groups.order[first + i] : first + i;
  }
};
template <int kTokens>
__device__ inline TilePlace tile_place(const TiledShape& s) {
  const int i = static_cast<int>(blockIdx.x);
  if (s.groups.order) {
    if (i >= *s.groups.n_tiles) return {0, 0, 0};
    const ExpertTile t = s.groups.tiles[i];
    return {t.expert, t.first, t.count};
  }
  const int left = s.count.rows() - i * kTokens;
  return {0, i * kTokens, left < kTokens ? left : kTokens};
}

template <int kTokens>
struct TileRoom {
  HalfTile<kRows> weights[2];
  HalfTile<kTokens> x[kStages];
};

// How the warps divide a tile: each takes 16 * kTokenTiles by 8 * kRowTiles sums.
template <int kTokens>
struct Division {
  static constexpr int kTokenWarps = kTokens / 64 > 0 ? kTokens / 64 : 1, kRowWarps = kWarps / kTokenWarps;
  static constexpr int kTokenTiles = kTokens / kTokenWarps / 16, kRowTiles = kRows / kRowWarps / 8;
  __device__ static int first_token() { return static_cast<int>(threadIdx.x / kWarp) / kRowWarps * kTokenTiles * 16; }
  __device__ static int first_row() { return static_cast<int>(threadIdx.x / kWarp) % kRowWarps * kRowTiles * 8; }
};
template <int kTokens>
struct Sums {
  float of[Division<kTokens>::kTokenTiles][Division<kTokens>::kRowTiles][4];
};

template <int kTokens>
__device__ __forceinline__ void multiply_tiles(HalfTile<kTokens>& x, HalfTile<kRows>& weights, Sums<kTokens>& sums) {
  using D = Division<kTokens>;
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  // The rows and chunks whose addresses the lane supplies: of x the matrices (low, left), (high, left), (low, right),
  // (high, right) of 16 by 16; of weights (first, left), (first, right), (second, left), (second, right) of two times 8
  // by 16.
  const int x_row = D::first_token() + lane % 16, x_chunk = lane / 16;
  const int w_row = D::first_row() + lane % 8 + lane / 16 * 8, w_chunk = lane / 8 % 2;
  INFER_UNROLL
  for (int part = 0; part < kStep / 16; ++part) {
    uint32_t a[D::kTokenTiles][4];
    INFER_UNROLL
    for (int i = 0; i < D::kTokenTiles; ++i) load_matrices(a[i], x.at(x_row + 16 * i, 2 * part + x_chunk));
    INFER_UNROLL
    for (int j = 0; j < D::kRowTiles; j += 2) {
      uint32_t b[4];
      load_matrices(b, weights.at(w_row + 8 * j, 2 * part + w_chunk));
      const uint32_t first[2] = {b[0], b[1]}, second[2] = {b[2], b[3]};
      INFER_UNROLL
      for (int i = 0; i < D::kTokenTiles; ++i) {
        multiply_add(sums.of[i][j], a[i], first);
        multiply_add(sums.of[i][j + 1], a[i], second);
      }
    }
  }
}

template <int kTokens>
__device__ inline void scale_sums(Sums<kTokens>& sums, float factor) {
  INFER_UNROLL
  for (auto& row : sums.of) {
    INFER_UNROLL
    for (auto& tile : row) {
      INFER_UNROLL
      for (float& x : tile) x *= factor;
    }
  }
}

// Writes the results, or the partial sums of a split, for which `bias` is null.
template <int kTokens>
__device__ inline void store_sums(const TiledShape& s, const TilePlace& p, const Sums<kTokens>& sums,
                                  const float* factors, const float* bias, float* out) {
  using D = Division<kTokens>;
  const int lane = static_cast<int>(threadIdx.x % kWarp), g = lane / 4, t = lane % 4;
  const int64_t first_row = static_cast<int64_t>(blockIdx.y) * kRows + D::first_row() + 2 * t;
  float* const part = out + (s.splits > 1 ? static_cast<int64_t>(blockIdx.z) * s.count.rows() * s.n : 0);
  INFER_UNROLL
  for (int i = 0; i < 2 * D::kTokenTiles; ++i) {
    const int token = D::first_token() + 8 * i + g;
    if (token >= p.count) continue;
    const int64_t vector = p.vector(s, token);
    const float factor = factors[vector / s.per_input];
    INFER_UNROLL
    for (int j = 0; j < 2 * D::kRowTiles; ++j) {
      const int64_t row = first_row + 8 * (j / 2) + j % 2;
      if (row >= s.n) continue;
      const float y = sums.of[i / 2][j / 2][2 * (i % 2) + j % 2] * factor;
      part[vector * s.n + row] = bias ? y + bias[p.expert * s.n + row] : y;
    }
  }
}

// The copies of a thread: chunks of rows of activations. Missing rows become zeros.
template <int kTokens>
class InputCopies {
 public:
  __device__ InputCopies(const TiledShape& s, const TilePlace& p, const HalfRows& x) {
    INFER_UNROLL
    for (int i = 0; i < kCopies; ++i) {
      const int row = row_of(i);
      present_[i] = row < p.count;
      const int64_t input = p.vector(s, present_[i] ? row : 0) / s.per_input;
      from_[i] = x.values + input * s.k + 8 * (threadIdx.x % kChunks);
    }
  }
  // Queues the tile of a step, if `wanted`; always ends a group, so that groups can be counted.
  __device__ void queue(HalfTile<kTokens>& to, int step, bool wanted) const {
    INFER_UNROLL
    for (int i = 0; i < kCopies; ++i) {
      if (!wanted || row_of(i) >= kTokens) continue;
      copy_async(to.at(row_of(i), static_cast<int>(threadIdx.x % kChunks)), from_[i] + step * kStep, present_[i]);
    }
    commit_copies();
  }

 private:
  static constexpr int kRowsAtOnce = kThreads / kChunks;
  static constexpr int kCopies = (kTokens + kRowsAtOnce - 1) / kRowsAtOnce;
  __device__ static int row_of(int i) { return i * kRowsAtOnce + static_cast<int>(threadIdx.x) / kChunks; }
  const uint16_t* from_[kCopies];
  bool present_[kCopies];
};

// The weights of a thread: one group of one row in each step.
template <typename W>
struct WeightGroup {
  const uint8_t* from;
  int row, group;
  __device__ typename TileWeights<W>::Loaded load(int step) const {
    return TileWeights<W>::load(from, step * (kStep / kTileGroup) + group);
  }
};
template <typename W>
__device__ inline WeightGroup<W> weight_group(const TiledShape& s, const TilePlace& p, const uint8_t* weights) {
  const int row = static_cast<int>(threadIdx.x) / 2;
  const int64_t in_matrix = static_cast<int64_t>(blockIdx.y) * kRows + row;
  // Rows past the end repeat the first one; their sums are not stored.
  return {weights + (p.expert * s.n + (in_matrix < s.n ? in_matrix : 0)) * s.row_bytes, row,
          static_cast<int>(threadIdx.x) % 2};
}

// Multiplies the weights of a step that are too large for fp16.
template <typename W, int kTokens>
__device__ void multiply_large(const WeightGroup<W>& mine, int step, HalfTile<kTokens>& x, HalfTile<kRows>& weights,
                               Sums<kTokens>& sums) {
  const auto loaded = mine.load(step);
  __syncthreads();
  put_weights<W>(weights, mine.row, mine.group, loaded, kLargeFactor, TileWeights<W>::is_large(loaded));
  scale_sums(sums, kLargeFactor);
  __syncthreads();
  multiply_tiles(x, weights, sums);
  scale_sums(sums, 1 / kLargeFactor);
}

template <typename W, int kTokens>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce)
    tiled_kernel(TiledShape s, const uint8_t* weights, HalfRows x, const float* bias, float* out) {
  const TilePlace place = tile_place<kTokens>(s);
  if (place.count <= 0) return;
  TileRoom<kTokens>& room = shared_memory<TileRoom<kTokens>>();
  const int steps = static_cast<int>(s.k / kStep), split = static_cast<int>(blockIdx.z);
  const int begin = steps * split / s.splits, end = steps * (split + 1) / s.splits;
  const InputCopies<kTokens> copies(s, place, x);
  const WeightGroup<W> mine = weight_group<W>(s, place, weights);
  for (int i = 0; i < kStages - 1; ++i) copies.queue(room.x[i], begin + i, begin + i < end);
  auto loaded = mine.load(begin);
  bool large = TileWeights<W>::is_large(loaded);
  put_weights<W>(room.weights[0], mine.row, mine.group, loaded, 1.0f, !large);
  if (begin + 1 < end) loaded = mine.load(begin + 1);
  Sums<kTokens> sums = {};
  int stage = 0;
  for (int step = begin; step < end; ++step) {
    HalfTile<kRows>&now = room.weights[(step - begin) % 2], &next = room.weights[(step - begin + 1) % 2];
    wait_copies<kStages - 2>();
    // From here on the tiles of this step are complete, and those of the previous one are free.
    bool any_large = false;
    if (TileWeights<W>::kMayBeLarge) any_large = __syncthreads_or(large);
    else __syncthreads();
    copies.queue(room.x[stage == 0 ? kStages - 1 : stage - 1], step + kStages - 1, step + kStages - 1 < end);
    if (step + 1 < end) {
      large = TileWeights<W>::is_large(loaded);
      put_weights<W>(next, mine.row, mine.group, loaded, 1.0f, !large);
    }
    if (step + 2 < end) loaded = mine.load(step + 2);
    multiply_tiles(room.x[stage], now, sums);
    if (any_large) multiply_large(mine, step, room.x[stage], now, sums);
    stage = stage + 1 == kStages ? 0 : stage + 1;
  }
  store_sums(s, place, sums, x.factors, bias, out);
}

// Adds the parts of the splits, in their order.
__global__ void add_splits_kernel(RowCount count, int64_t n, int splits, const float* parts, const float* bias,
                                  float* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x, size = count.rows() * n;
  if (i >= size) return;
  float sum = 0;
  for (int split = 0; split < splits; ++split) sum += parts[split * size + i];
  out[i] = bias ? sum + bias[i % n] : sum;
}

// ---- Launches ----

// The sizes of a launch, from the capacities of its tensors.
struct Plan {
  bool experts;
  int64_t inputs, vectors, n, k, n_experts, per_row;
  int tile, splits;
  int64_t tiles;  // of vectors
};

Plan plan_of(const OpDesc& op, const Context& context) {
  const TensorDesc &x = *op.inputs[0], &weight = *op.inputs[1];
  const bool experts = op.op == Op::kMatMulExperts;
  Plan p = {};
  p.experts = experts;
  p.k = weight.shape.last();
  p.n = weight.shape[experts ? 1 : 0];
  p.inputs = x.shape.elements() / p.k;
  p.vectors = experts ? x.shape[0] * op.outputs[0]->shape[1] : p.inputs;
  p.n_experts = experts ? weight.shape[0] : 1;
  p.per_row = p.inputs / x.shape[0];
  p.tile = p.vectors / p.n_experts > kFew + kFew / 2 ? kMany : kFew;
  p.tiles = (p.vectors + p.tile - 1) / p.tile + (experts ? std::min(p.n_experts, p.vectors) : 0);
  // Enough blocks for two on each multiprocessor; matmuls with experts have enough as they are.
  const int64_t blocks = p.tiles * ((p.n + kRows - 1) / kRows), wanted = 2 * context.properties.multiProcessorCount;
  const int64_t splits = std::min({(wanted + blocks - 1) / blocks, p.k / kStep / kLeastSteps, int64_t{kMostSplits}});
  p.splits = experts ? 1 : static_cast<int>(std::max<int64_t>(splits, 1));
  return p;
}

// The parts of the scratch memory.
struct Scratch {
  HalfRows x;
  Groups groups = {};
  float* parts = nullptr;
  size_t bytes;
};
Scratch divide_scratch(const Plan& p, std::byte* begin) {
  size_t used = 0;
  const auto take = [&](int64_t bytes) {
    std::byte* const at = begin + used;
    used += (static_cast<size_t>(bytes) + 63) / 64 * 64;
    return at;
  };
  Scratch s;
  s.x.values = reinterpret_cast<uint16_t*>(take(p.inputs * p.k * 2));
  s.x.factors = reinterpret_cast<float*>(take(p.inputs * 4));
  if (p.experts) {
    s.groups.order = reinterpret_cast<int32_t*>(take(p.vectors * 4));
    s.groups.tiles = reinterpret_cast<ExpertTile*>(take(p.tiles * static_cast<int64_t>(sizeof(ExpertTile))));
    s.groups.n_tiles = reinterpret_cast<int32_t*>(take(4));
  }
  if (p.splits > 1) s.parts = reinterpret_cast<float*>(take(p.splits * p.vectors * p.n * 4));
  s.bytes = used;
  return s;
}

// Whether rows of 16-bit weights are whole steps.
bool has_tiles(const TensorDesc& weight) {
  if (traits(weight.type).quantized) return true;
  return (weight.type == DataType::kF16 || weight.type == DataType::kBF16) && weight.shape.last() % kStep == 0;
}

template <typename F>
void with_tiled_format(DataType type, F f) {
  if (type == DataType::kF16) return f(F16{});
  if (type == DataType::kBF16) return f(BF16{});
  with_quantized_format(type, f);
}

}  // namespace

bool is_tiled(const OpDesc& op, const Context& context) {
  const TensorDesc& weight = *op.inputs[1];
  if (context.deterministic || !has_tiles(weight) || op.inputs[0]->shape[0] < kLeastRows) return false;
  return op.op == Op::kMatMul || weight.shape[0] <= kMostExperts;
}

size_t tiled_scratch_bytes(const OpDesc& op, const Context& context) {
  return divide_scratch(plan_of(op, context), nullptr).bytes;
}

void multiply_tiled(const Launch& launch, CudaStream& stream) {
  const TensorRef &x = launch.inputs[0], &weight = launch.inputs[1], &bias = launch.inputs[launch.inputs.size() - 1];
  const Plan p = plan_of(launch.op, stream.context());
  const Scratch scratch = divide_scratch(p, scratch_address(launch));
  const RowCount count = row_count(launch, *x.desc);
  launch_kernel(stream, {dim3(static_cast<unsigned>(p.inputs)), kThreads}, to_half_kernel,
                InputShape{count, p.per_row, p.k, x.desc->row_stride}, address<const float>(x), scratch.x);
  if (p.experts) {
    const auto used = static_cast<int>(launch.outputs[0].desc->shape[1]);
    const ExpertShape shape = {count, static_cast<int>(p.n_experts), used, p.tile,
                               address<const int32_t>(launch.inputs[2])};
    launch_kernel(stream, {dim3(1), kThreads}, group_experts_kernel, shape, scratch.groups);
  }
  const TiledShape shape = {count,
                            p.n,
                            p.k,
                            static_cast<int64_t>(row_bytes(weight.desc->type, p.k)),
                            p.splits,
                            scratch.groups,
                            static_cast<int>(p.vectors / p.inputs)};
  const dim3 grid(static_cast<unsigned>(p.tiles), blocks_for(p.n, kRows), static_cast<unsigned>(p.splits));
  auto* const out = address<float>(launch.outputs[0]);
  const auto* const added = address<const float>(bias);
  with_tiled_format(weight.desc->type, [&](auto w) {
    using W = decltype(w);
    launch_kernel(stream, {grid, kThreads}, p.tile == kMany ? tiled_kernel<W, kMany> : tiled_kernel<W, kFew>, shape,
                  address<const uint8_t>(weight), scratch.x, p.splits > 1 ? nullptr : added,
                  p.splits > 1 ? scratch.parts : out);
  });
  if (p.splits == 1) return;
  launch_kernel(stream, {dim3(blocks_for(p.vectors * p.n, kThreads)), kThreads}, add_splits_kernel, count, p.n,
                p.splits, static_cast<const float*>(scratch.parts), added, out);
}

}  // namespace infer::cuda
