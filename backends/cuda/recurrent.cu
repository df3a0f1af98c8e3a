// short_conv, gated_pool, token_shift and selective_scan; delta_rule.cu has the other operations on states. short_conv
// and token_shift need a state only for a sequence's first rows: the others have blocks of threads of their own.
#include "backends/cuda/activations.cuh"
#include "backends/cuda/launch.h"
#include "backends/cuda/states.cuh"

namespace infer::cuda {
namespace {

constexpr unsigned kThreads = 128;

// ---- token_shift ----

__global__ void token_shift_kernel(States states, int64_t channels, int64_t x_stride, const float* x, float* out) {
  const int row = static_cast<int>(blockIdx.x);
  const int64_t i = static_cast<int64_t>(blockIdx.y) * kThreads + threadIdx.x;
  if (row >= states.tokens()) return;
  if (!states.is_first(row)) {
    if (i < channels) out[row * channels + i] = x[(row - 1) * x_stride + i];
    return;
  }
  Run run;
  if (!find_run(states, states.sequences[row], run) || i >= channels) return;
  out[row * channels + i] = run.empty ? 0.0f : run.state[i];
  run.state[i] = x[(run.end - 1) * x_stride + i];
}

void token_shift(const Prepared&, const Launch& launch, Stream& stream) {
  const TensorRef& x = launch.inputs[0];
  const int64_t channels = x.desc->shape[1];
  const dim3 grid(static_cast<unsigned>(rows_of(x)), blocks_for(channels, kThreads));
  launch_kernel(cuda_stream(stream), {grid, kThreads}, token_shift_kernel, states_of(launch), channels,
                x.desc->row_stride, address<const float>(x), address<float>(launch.outputs[0]));
}

// ---- short_conv ----

struct ConvShape {
  States states;
  int64_t channels, x_stride;
  int width, dilation;
  bool silu;
  const float *x, *weight, *bias;
  float* out;

  __device__ int rows_before() const { return (width - 1) * dilation; }
};

// Row `row`, counted from the step's first one; rows of earlier steps come from the state.
__device__ inline float conv_input(const ConvShape& s, const Run& run, int row, int64_t channel) {
  if (row >= run.first) return s.x[row * s.x_stride + channel];
  return run.empty ? 0.0f : run.state[(s.rows_before() + row - run.first) * s.channels + channel];
}

__device__ inline void convolve(const ConvShape& s, const Run& run, int row, int64_t channel) {
  float sum = 0;
  for (int j = 0; j < s.width; ++j) {
    const int from = row - (s.width - 1 - j) * s.dilation;
    sum = fmaf(conv_input(s, run, from, channel), s.weight[channel * s.width + j], sum);
  }
  if (s.bias) sum += s.bias[channel];
  s.out[row * s.channels + channel] = s.silu ? activate(UnaryKind::kSilu, sum) : sum;
}

// The block of a sequence's first row computes all rows that need the state, and writes the state.
__global__ void short_conv_kernel(ConvShape s) {
  const int row = static_cast<int>(blockIdx.x), before = s.rows_before();
  const int64_t channel = static_cast<int64_t>(blockIdx.y) * kThreads + threadIdx.x;
  if (row >= s.states.tokens()) return;
  const int sequence = s.states.sequences[row];
  if (row >= before && s.states.has_row(row - before, sequence)) {
    if (channel < s.channels) convolve(s, {row - before, row + 1, nullptr, true}, row, channel);
    return;
  }
  if (!s.states.is_first(row)) return;
  Run run;
  if (!find_run(s.states, sequence, run) || channel >= s.channels) return;
  for (int t = run.first; t < run.end && t < run.first + before; ++t) convolve(s, run, t, channel);
  // Ascending: each row is read before it is overwritten.
  for (int j = 0; j < before; ++j) {
    run.state[j * s.channels + channel] = conv_input(s, run, run.end - before + j, channel);
  }
}

void short_conv(const Prepared&, const Launch& launch, Stream& stream) {
  const TensorRef &x = launch.inputs[0], &weight = launch.inputs[1];
  const ShortConvParams& params = launch.param<ShortConvParams>();
  ConvShape s = {};
  s.states = states_of(launch);
  s.channels = weight.desc->shape[0];
  s.x_stride = x.desc->row_stride;
  s.width = static_cast<int>(weight.desc->shape[1]);
  s.dilation = params.dilation;
  s.silu = params.silu;
  s.x = address<const float>(x);
  s.weight = address<const float>(weight);
  s.bias = address<const float>(launch.inputs[2]);
  s.out = address<float>(launch.outputs[0]);
  const dim3 grid(static_cast<unsigned>(rows_of(x)), blocks_for(s.channels, kThreads));
  launch_kernel(cuda_stream(stream), {grid, kThreads}, short_conv_kernel, s);
}

// ---- gated_pool ----

struct PoolShape {
  States states;
  int64_t d, x_stride, gates_stride;
  int block;
  const float *x, *gates, *offsets;
  float* out;
};

// For the rows of a block of positions: the largest gate, the sum of the weights relative to it, and the sum of the
// weighted rows.
struct Pooled {
  float largest, total, rows;
  __device__ void add(float gate, float x) {
    const bool any = total > 0;
    const float best = any ? fmaxf(largest, gate) : gate;
    const float before = any ? expf(largest - best) : 0.0f, weight = expf(gate - best);
    largest = best;
    total = fmaf(total, before, weight);
    rows = fmaf(rows, before, x * weight);
  }
};

// A thread per channel and sequence.
template <int kParts>
__global__ void gated_pool_kernel(PoolShape s) {
  Run run;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (!find_run(s.states, static_cast<int>(blockIdx.y), run) || i >= s.d) return;
  Pooled pooled[kParts] = {};
  for (int p = 0; p < kParts && !run.empty; ++p) {
    const float* const from = run.state + 3 * p * s.d + i;
    pooled[p] = {from[0], from[s.d], from[2 * s.d]};
  }
  for (int t = run.first; t < run.end; ++t) {
    const int place = s.states.positions[t] % s.block;
    for (int p = 0; p < kParts; ++p) {
      const int64_t at = p * s.d + i;
      const float gate = s.gates[t * s.gates_stride + at];
      // The last part of a row belongs to the current block.
      pooled[kParts - 1 - p].add(s.offsets ? gate + s.offsets[place * kParts * s.d + at] : gate,
                                 s.x[t * s.x_stride + at]);
    }
    s.out[t * s.d + i] = pooled[0].rows / pooled[0].total;
    if (place != s.block - 1) continue;
    pooled[0] = pooled[kParts - 1];
    pooled[kParts - 1] = {};
  }
  for (int p = 0; p < kParts; ++p) {
    float* const to = run.state + 3 * p * s.d + i;
    to[0] = pooled[p].largest;
    to[s.d] = pooled[p].total;
    to[2 * s.d] = pooled[p].rows;
  }
}

void gated_pool(const Prepared&, const Launch& launch, Stream& stream) {
  const TensorRef &x = launch.inputs[0], &gates = launch.inputs[1];
  const PoolShape s = {states_of(launch),
                       x.desc->shape[2],
                       x.desc->row_stride,
                       gates.desc->row_stride,
                       launch.param<GatedPoolParams>().block,
                       address<const float>(x),
                       address<const float>(gates),
                       address<const float>(launch.inputs[2]),
                       address<float>(launch.outputs[0])};
  const dim3 grid(blocks_for(s.d, kThreads), most_sequences(launch, x));
  launch_kernel(cuda_stream(stream), {grid, kThreads},
                x.desc->shape[1] == 1 ? gated_pool_kernel<1> : gated_pool_kernel<2>, s);
}

// ---- selective_scan ----

constexpr int kMostRowLanes = 16, kMostValues = 32;    // threads that share a row of the state, values of a thread
constexpr int kMostScanTile = 8, kScanRoom = 8 << 10;  // tokens that are staged together, floats for their b and c

struct ScanShape {
  States states;
  int rows, d, n, groups, per_group;  // rows: heads * d
  int lanes, block_rows, tile;        // threads that share a row, rows of a block, tokens staged together
  int most_groups;                    // that the rows of a block may use
  bool per_value;
  int64_t x_stride, dt_stride, b_stride, c_stride;
  const float *x, *dt, *b, *c, *a, *skip;
  float* out;
};

// What a block stages of the tokens of a tile: [token][row of the block]; and in dynamic memory the rows of b and of c,
// [token][most_groups][n] each.
struct ScanTile {
  float x[kMostScanTile * kThreads], step[kMostScanTile * kThreads], decay[kMostScanTile * kThreads];
};
struct ScanRows {
  float *b, *c;
};
__device__ inline ScanRows scan_rows(const ScanShape& s) {
  auto* const begin = static_cast<float*>(dynamic_shared_memory());
  return {begin, begin + s.tile * s.most_groups * s.n};
}
__device__ inline int group_of(const ScanShape& s, int row) { return row / s.d / s.per_group; }

// Stages `count` tokens from `token` on.
__device__ void stage_scan(const ScanShape& s, int token, int count) {
  ScanTile& tile = shared_memory<ScanTile>();
  const ScanRows rows = scan_rows(s);
  const int first_row = static_cast<int>(blockIdx.x) * s.block_rows;
  for (int i = static_cast<int>(threadIdx.x); i < count * s.block_rows; i += static_cast<int>(kThreads)) {
    const int row = first_row + i % s.block_rows, head = row / s.d;
    const int t = token + i / s.block_rows;
    if (row >= s.rows) continue;
    tile.x[i] = s.x[t * s.x_stride + row];
    tile.step[i] = softplus_of(s.dt[t * s.dt_stride + head]);
    if (!s.per_value) tile.decay[i] = expf(tile.step[i] * s.a[head]);
  }
  const int first_group = group_of(s, first_row), width = s.most_groups * s.n;
  const int used = (s.groups - first_group) * s.n;  // there are no groups past these
  for (int i = static_cast<int>(threadIdx.x); i < count * width; i += static_cast<int>(kThreads)) {
    const int t = token + i / width, at = i % width;
    if (at >= used) continue;
    rows.b[i] = s.b[t * s.b_stride + first_group * s.n + at];
    rows.c[i] = s.c[t * s.c_stride + first_group * s.n + at];
  }
}

// A thread's part of a row of the state: every `lanes`-th value, in registers through the step.
template <int kValues>
struct ScanPart {
  int row, own, lane;  // row of the state, and of the block
  bool used;
  float values[kValues], rates[kValues];
};

template <int kValues>
__device__ void load_part(const ScanShape& s, const Run& run, ScanPart<kValues>& part) {
  part.own = static_cast<int>(threadIdx.x) / s.lanes;
  part.lane = static_cast<int>(threadIdx.x) % s.lanes;
  part.row = static_cast<int>(blockIdx.x) * s.block_rows + part.own;
  part.used = part.row < s.rows;
  const float* const state = run.state + static_cast<int64_t>(part.row) * s.n;
  for (int k = 0; k < kValues; ++k) {
    const int j = part.lane + k * s.lanes;
    const bool inside = part.used && j < s.n;
    part.values[k] = inside && !run.empty ? state[j] : 0.0f;
    part.rates[k] = inside && s.per_value ? s.a[part.row / s.d * s.n + j] : 0.0f;
  }
}

// This thread's part of the result of a token; `t` counts from the first one of the tile.
template <int kValues>
__device__ float advance(const ScanShape& s, ScanPart<kValues>& part, int t) {
  const ScanTile& tile = shared_memory<ScanTile>();
  const int own = t * s.block_rows + part.own;
  const ScanRows rows = scan_rows(s);
  const int first_group = group_of(s, static_cast<int>(blockIdx.x) * s.block_rows);
  const int at = (t * s.most_groups + group_of(s, part.row) - first_group) * s.n;
  const float step = tile.step[own], scaled = tile.x[own] * step, of_head = s.per_value ? 0.0f : tile.decay[own];
  float sum = 0;
  for (int k = 0; k < kValues; ++k) {
    const int j = part.lane + k * s.lanes;
    if (j >= s.n) continue;
    const float decay = s.per_value ? expf(step * part.rates[k]) : of_head;
    part.values[k] = fmaf(part.values[k], decay, rows.b[at + j] * scaled);
    sum = fmaf(part.values[k], rows.c[at + j], sum);
  }
  return sum;
}

template <int kValues>
__global__ void selective_scan_kernel(ScanShape s) {
  Run run;
  if (!find_run(s.states, static_cast<int>(blockIdx.y), run)) return;
  const ScanTile& tile = shared_memory<ScanTile>();
  ScanPart<kValues> part;
  load_part(s, run, part);
  const float skip = s.skip && part.used ? s.skip[part.row / s.d] : 0.0f;
  for (int token = run.first; token < run.end; token += s.tile) {
    const int count = run.end - token < s.tile ? run.end - token : s.tile;
    __syncthreads();  // the tile before has been read
    stage_scan(s, token, count);
    __syncthreads();
    for (int t = 0; t < count; ++t) {
      float sum = part.used ? advance(s, part, t) : 0.0f;
      for (int lanes = s.lanes / 2; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(kAllLanes, sum, lanes);
      if (part.used && part.lane == 0) {
        const float x = tile.x[t * s.block_rows + part.own];
        s.out[static_cast<int64_t>(token + t) * s.rows + part.row] = s.skip ? fmaf(skip, x, sum) : sum;
      }
    }
  }
  if (!part.used) return;
  for (int k = 0; k < kValues; ++k) {
    const int j = part.lane + k * s.lanes;
    if (j < s.n) run.state[static_cast<int64_t>(part.row) * s.n + j] = part.values[k];
  }
}

// b of selective_scan is [T, groups, n].
bool supports_scan(const OpDesc& op, const Device&) { return op.inputs[2]->shape[2] <= kMostRowLanes * kMostValues; }

ScanShape scan_shape(const Launch& launch) {
  const TensorRef &x = launch.inputs[0], &dt = launch.inputs[1], &b = launch.inputs[2], &c = launch.inputs[3];
  const auto heads = static_cast<int>(x.desc->shape[1]);
  ScanShape s = {};
  s.states = states_of(launch);
  s.d = static_cast<int>(x.desc->shape[2]);
  s.rows = heads * s.d;
  s.groups = static_cast<int>(b.desc->shape[1]);
  s.n = static_cast<int>(b.desc->shape[2]);
  s.per_group = heads / s.groups;
  s.lanes = 1;
  while (s.lanes < kMostRowLanes && 4 * s.lanes < s.n) s.lanes *= 2;
  s.block_rows = static_cast<int>(kThreads) / s.lanes;
  const int of_group = s.d * s.per_group;  // rows
  s.most_groups = std::min(s.groups, (s.block_rows - 1 + of_group - 1) / of_group + 1);
  s.tile = std::clamp(kScanRoom / (2 * s.most_groups * s.n), 1, kMostScanTile);
  s.per_value = launch.inputs[4].desc->shape.rank == 2;
  s.x_stride = x.desc->row_stride;
  s.dt_stride = dt.desc->row_stride;
  s.b_stride = b.desc->row_stride;
  s.c_stride = c.desc->row_stride;
  s.x = address<const float>(x);
  s.dt = address<const float>(dt);
  s.b = address<const float>(b);
  s.c = address<const float>(c);
  s.a = address<const float>(launch.inputs[4]);
  s.skip = address<const float>(launch.inputs[5]);
  s.out = address<float>(launch.outputs[0]);
  return s;
}

void selective_scan(const Prepared&, const Launch& launch, Stream& stream) {
  const ScanShape s = scan_shape(launch);
  const dim3 grid(blocks_for(s.rows, s.block_rows), most_sequences(launch, launch.inputs[0]));
  const size_t room = sizeof(float) * static_cast<size_t>(2 * s.tile * s.most_groups * s.n);
  const int values = (s.n + s.lanes - 1) / s.lanes;
  const auto start = [&](void (*kernel)(ScanShape)) {
    launch_kernel(cuda_stream(stream), {grid, kThreads, room}, kernel, s);
  };
  if (values <= 4) start(selective_scan_kernel<4>);
  else if (values <= 8) start(selective_scan_kernel<8>);
  else if (values <= 16) start(selective_scan_kernel<16>);
  else start(selective_scan_kernel<kMostValues>);
}

}  // namespace

std::span<const OpRecord> recurrent_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kShortConv, supports_any, nothing_to_prepare, short_conv},
      {Op::kGatedPool, supports_any, nothing_to_prepare, gated_pool},
      {Op::kTokenShift, supports_any, nothing_to_prepare, token_shift},
      {Op::kSelectiveScan, supports_scan, nothing_to_prepare, selective_scan},
  };
  return kRecords;
}

}  // namespace infer::cuda
