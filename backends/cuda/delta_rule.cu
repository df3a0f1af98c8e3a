// delta_rule and wkv, whose states have a matrix [n, d] for each head. A block of threads has 32 columns of one head,
// one for each lane; the values of a column are divided among the warps, which keep theirs in registers through the
// step. The vectors that all columns need are staged in shared memory for some tokens at a time, padded with zeros. The
// warps' sums over a column go through shared memory too, in separate places for even and odd tokens, so that a token
// needs only one barrier.
#include "backends/cuda/activations.cuh"
#include "backends/cuda/launch.h"
#include "backends/cuda/states.cuh"

namespace infer::cuda {
namespace {

constexpr unsigned kParts = 8, kThreads = kParts * kWarp;
constexpr int kColumns = 32;
constexpr int kMostValues = 32;                     // of a thread
constexpr int kMostTile = 16, kTileRoom = 6 << 10;  // tokens that are staged together, floats for their vectors

__device__ inline int thread_id() { return static_cast<int>(threadIdx.x); }
__device__ inline int column_id() { return thread_id() % kColumns; }
__device__ inline int part_id() { return thread_id() / kColumns; }

// This thread's values of the block's columns.
template <int kValues>
struct Column {
  static constexpr int kPadded = kValues * static_cast<int>(kParts);  // values of a staged vector
  float values[kValues];

  // `state`: the start of the column, or null if it is empty or does not exist.
  __device__ void load(const float* state, int n, int64_t stride) {
    for (int k = 0; k < kValues; ++k) {
      const int j = part_id() * kValues + k;
      values[k] = state && j < n ? state[j * stride] : 0.0f;
    }
  }
  __device__ void store(float* state, int n, int64_t stride) const {
    for (int k = 0; k < kValues; ++k) {
      const int j = part_id() * kValues + k;
      if (j < n) state[j * stride] = values[k];
    }
  }
};

// This thread's part of a staged vector.
template <int kValues>
__device__ inline void own_part(const float* staged, float (&x)[kValues]) {
  const auto* const from = reinterpret_cast<const float4*>(staged + part_id() * kValues);
  for (int k = 0; k < kValues / 4; ++k) {
    const float4 four = from[k];
    x[4 * k] = four.x;
    x[4 * k + 1] = four.y;
    x[4 * k + 2] = four.z;
    x[4 * k + 3] = four.w;
  }
}

// Rows of an input: [T, .., n].
struct Rows {
  const float* data;
  int64_t stride;
};
Rows rows_at(const TensorRef& x) { return {address<const float>(x), x ? x.desc->row_stride : 0}; }

// Writes f(value) for `n` values of `count` rows, which begin at column `at`, and zeros up to kPadded.
template <int kPadded, typename F>
__device__ inline void stage(const Rows& rows, int row, int count, int64_t at, int n, float* to, F f) {
  for (int i = thread_id(); i < count * kPadded; i += static_cast<int>(kThreads)) {
    const int j = i % kPadded;
    to[i] = j < n ? f(rows.data[(row + i / kPadded) * rows.stride + at + j]) : 0.0f;
  }
}
struct Same {
  __device__ float operator()(float x) const { return x; }
};

// Sums over a column: of what a token reads, and of its result.
enum SumKind { kRead, kResult };
struct Sums {
  float parts[2][2][kThreads];  // [kind][even or odd token]
};
__device__ inline void keep_sum(SumKind kind, int turn, float x) {
  shared_memory<Sums>().parts[kind][turn % 2][thread_id()] = x;
}
__device__ inline float column_sum(SumKind kind, int turn) {
  const float* const p = shared_memory<Sums>().parts[kind][turn % 2] + column_id();
  const float a = p[0] + p[kColumns], b = p[2 * kColumns] + p[3 * kColumns];
  const float c = p[4 * kColumns] + p[5 * kColumns], d = p[6 * kColumns] + p[7 * kColumns];
  return (a + b) + (c + d);
}

// Arguments of both operations.
struct MatrixShape {
  States states;
  int heads, n, d;
  int blocks, tile;  // blocks of threads that share a head, tokens staged together

  __device__ int head() const { return static_cast<int>(blockIdx.x) / blocks; }
  __device__ int first_column() const { return static_cast<int>(blockIdx.x) % blocks * kColumns; }
};

// The number of tokens staged together, each with `vectors` vectors.
template <int kValues>
int tile_of(int vectors) {
  return std::clamp(kTileRoom / (vectors * Column<kValues>::kPadded), 1, kMostTile);
}

MatrixShape matrix_shape(const Launch& launch, int64_t heads, int64_t n, int64_t d) {
  MatrixShape m = {};
  m.states = states_of(launch);
  m.heads = static_cast<int>(heads);
  m.n = static_cast<int>(n);
  m.d = static_cast<int>(d);
  m.blocks = static_cast<int>(blocks_for(d, kColumns));
  return m;
}

// Calls f(integral constant) with the values of a thread for columns of n values.
template <typename F>
void with_values(int n, F f) {
  if (n <= 4 * static_cast<int>(kParts)) f(std::integral_constant<int, 4>());
  else if (n <= 8 * static_cast<int>(kParts)) f(std::integral_constant<int, 8>());
  else if (n <= 16 * static_cast<int>(kParts)) f(std::integral_constant<int, 16>());
  else f(std::integral_constant<int, kMostValues>());
}

// q of delta_rule and r of wkv are [T, heads, n].
bool supports_matrices(const OpDesc& op, const Device&) {
  return op.inputs[0]->shape[2] <= kMostValues * static_cast<int>(kParts);
}

// The state of this thread's column, and the column's place in a row of the results.
struct ColumnPlace {
  float* state;  // null: there is no such column
  int64_t out;
};
__device__ inline ColumnPlace place_of_column(const MatrixShape& m, const Run& run) {
  const int column = m.first_column() + column_id();
  if (column >= m.d) return {nullptr, 0};
  return {run.state + static_cast<int64_t>(m.head()) * m.n * m.d + column,
          static_cast<int64_t>(m.head()) * m.d + column};
}

// The values of the block's columns in `count` rows: [token][column].
__device__ inline void stage_columns(const MatrixShape& m, const Rows& v, int row, int count, float* to) {
  const int used = m.d - m.first_column();
  const int64_t at = static_cast<int64_t>(m.head()) * m.d + m.first_column();
  stage<kColumns>(v, row, count, at, used, to, Same());
}

// ---- delta_rule ----

struct DeltaShape {
  MatrixShape matrix;
  int groups;
  DeltaRuleParams params;
  Rows q, k, v, dt, beta;
  const float* a;
  float* out;
};
struct DeltaTile {
  float v[kMostTile * kColumns], beta[kMostTile], decay[kMostTile];
};
// In dynamic memory, [tile][padded] each.
struct DeltaVectors {
  float *q, *k, *decay;
};
template <int kValues>
__device__ inline DeltaVectors delta_vectors(const DeltaShape& s) {
  auto* const begin = static_cast<float*>(dynamic_shared_memory());
  const int all = s.matrix.tile * Column<kValues>::kPadded;
  return {begin, begin + all, begin + 2 * all};
}

struct DecayOf {
  float rate, lowest;
  __device__ float operator()(float dt) const {
    return expf(lowest < 0 ? lowest * sigmoid_of(rate * dt) : rate * softplus_of(dt));
  }
};

template <int kValues, bool kPerChannel>
__device__ void stage_delta(const DeltaShape& s, int row, int count) {
  constexpr int kPadded = Column<kValues>::kPadded;
  const MatrixShape& m = s.matrix;
  const int head = m.head(), group = s.params.tiled_heads ? head % s.groups : head / (m.heads / s.groups);
  const DeltaVectors vectors = delta_vectors<kValues>(s);
  DeltaTile& tile = shared_memory<DeltaTile>();
  const DecayOf decay = {s.a[head], s.params.lowest_decay};
  stage<kPadded>(s.q, row, count, group * m.n, m.n, vectors.q, Same());
  stage<kPadded>(s.k, row, count, group * m.n, m.n, vectors.k, Same());
  stage<1>(s.beta, row, count, head, 1, tile.beta, Same());
  stage_columns(m, s.v, row, count, tile.v);
  if (kPerChannel) stage<kPadded>(s.dt, row, count, head * m.n, m.n, vectors.decay, decay);
  else stage<1>(s.dt, row, count, head, 1, tile.decay, decay);
}

// One token, which is token t of the tile: what its column reads, then the correction and the result.
template <int kValues, bool kPerChannel>
__device__ void advance_delta(const DeltaShape& s, int t, int turn, Column<kValues>& column) {
  constexpr int kPadded = Column<kValues>::kPadded;
  const DeltaTile& tile = shared_memory<DeltaTile>();
  const DeltaVectors vectors = delta_vectors<kValues>(s);
  float k[kValues], other[kValues];
  own_part(vectors.k + t * kPadded, k);
  if (kPerChannel) own_part(vectors.decay + t * kPadded, other);
  float read = 0, sum = 0;
  for (int i = 0; i < kValues; ++i) {
    column.values[i] *= kPerChannel ? other[i] : tile.decay[t];
    read = fmaf(column.values[i], k[i], read);
  }
  keep_sum(kRead, turn, read);
  __syncthreads();
  own_part(vectors.q + t * kPadded, other);
  const float correction = (tile.v[t * kColumns + column_id()] - column_sum(kRead, turn)) * tile.beta[t];
  for (int i = 0; i < kValues; ++i) {
    column.values[i] = fmaf(k[i], correction, column.values[i]);
    sum = fmaf(column.values[i], other[i], sum);
  }
  keep_sum(kResult, turn, sum);
}

// Writes the result of the token before `turn`, whose sums are complete: the parts take turns.
__device__ inline void write_result(const MatrixShape& m, const Run& run, const ColumnPlace& place, int turn,
                                    float* out) {
  if (turn == 0 || !place.state || turn % static_cast<int>(kParts) != part_id()) return;
  out[static_cast<int64_t>(run.first + turn - 1) * m.heads * m.d + place.out] = column_sum(kResult, turn - 1);
}

template <int kValues, bool kPerChannel>
__global__ void delta_rule_kernel(DeltaShape s) {
  const MatrixShape& m = s.matrix;
  Run run;
  if (!find_run(m.states, static_cast<int>(blockIdx.y), run)) return;
  const ColumnPlace place = place_of_column(m, run);
  Column<kValues> column;
  column.load(run.empty ? nullptr : place.state, m.n, m.d);
  const int n = run.end - run.first;
  for (int turn = 0; turn < n; ++turn) {
    const int t = turn % m.tile;
    if (t == 0) {
      __syncthreads();  // the tile before has been read
      stage_delta<kValues, kPerChannel>(s, run.first + turn, n - turn < m.tile ? n - turn : m.tile);
      __syncthreads();
    }
    advance_delta<kValues, kPerChannel>(s, t, turn, column);
    write_result(m, run, place, turn, s.out);
  }
  __syncthreads();
  write_result(m, run, place, n, s.out);
  if (place.state) column.store(place.state, m.n, m.d);
}

void delta_rule(const Prepared&, const Launch& launch, Stream& stream) {
  const TensorRef &q = launch.inputs[0], &v = launch.inputs[2], &dt = launch.inputs[3];
  DeltaShape s = {};
  s.matrix = matrix_shape(launch, v.desc->shape[1], q.desc->shape[2], v.desc->shape[2]);
  s.groups = static_cast<int>(q.desc->shape[1]);
  s.params = launch.param<DeltaRuleParams>();
  s.q = rows_at(q);
  s.k = rows_at(launch.inputs[1]);
  s.v = rows_at(v);
  s.dt = rows_at(dt);
  s.beta = rows_at(launch.inputs[4]);
  s.a = address<const float>(launch.inputs[5]);
  s.out = address<float>(launch.outputs[0]);
  const bool per_channel = dt.desc->shape.rank == 3;
  const dim3 grid(static_cast<unsigned>(s.matrix.heads * s.matrix.blocks), most_sequences(launch, q));
  with_values(s.matrix.n, [&](auto values) {
    constexpr int kValues = decltype(values)::value;
    const int vectors = per_channel ? 3 : 2;
    s.matrix.tile = tile_of<kValues>(vectors);
    const size_t room = sizeof(float) * static_cast<size_t>(s.matrix.tile * vectors * Column<kValues>::kPadded);
    launch_kernel(cuda_stream(stream), {grid, kThreads, room},
                  per_channel ? delta_rule_kernel<kValues, true> : delta_rule_kernel<kValues, false>, s);
  });
}

// ---- wkv ----

struct WkvShape {
  MatrixShape matrix;  // d is n
  Rows r, k, v, w, a, b;
  const float* first;
  float *out, *bonus;
};
struct WkvTile {
  float v[kMostTile * kColumns], bonus[kMostTile];
};
// In dynamic memory, [tile][padded] each. a and b are those of RWKV-7.
struct WkvVectors {
  float *r, *k, *decay, *a, *b;
};
template <int kValues>
__device__ inline WkvVectors wkv_vectors(const WkvShape& s) {
  auto* const begin = static_cast<float*>(dynamic_shared_memory());
  const int all = s.matrix.tile * Column<kValues>::kPadded;
  return {begin, begin + all, begin + 2 * all, begin + 3 * all, begin + 4 * all};
}

template <bool kSeven>
struct WkvDecay {
  __device__ float operator()(float w) const { return expf(kSeven ? -0.606531f * sigmoid_of(w) : -expf(w)); }
};

template <int kValues, bool kSeven>
__device__ void stage_wkv(const WkvShape& s, int row, int count) {
  constexpr int kPadded = Column<kValues>::kPadded;
  const int n = s.matrix.n, at = s.matrix.head() * n;
  const WkvVectors vectors = wkv_vectors<kValues>(s);
  stage<kPadded>(s.r, row, count, at, n, vectors.r, Same());
  stage<kPadded>(s.k, row, count, at, n, vectors.k, Same());
  stage<kPadded>(s.w, row, count, at, n, vectors.decay, WkvDecay<kSeven>());
  if (kSeven) {
    stage<kPadded>(s.a, row, count, at, n, vectors.a, Same());
    stage<kPadded>(s.b, row, count, at, n, vectors.b, Same());
  }
  stage_columns(s.matrix, s.v, row, count, shared_memory<WkvTile>().v);
}

// Writes the bonus of the tile's tokens: a warp sums r * first * k of a token. REQUIRES a barrier before.
template <int kValues>
__device__ void write_bonus(const WkvShape& s, int row, int count) {
  constexpr int kPadded = Column<kValues>::kPadded;
  const MatrixShape& m = s.matrix;
  const WkvVectors vectors = wkv_vectors<kValues>(s);
  const int head_at = m.head() * m.n, column = m.first_column() + column_id();
  for (int t = part_id(); t < count; t += static_cast<int>(kParts)) {
    float sum = 0;
    for (int j = column_id(); j < m.n; j += kColumns) {
      sum = fmaf(vectors.r[t * kPadded + j] * s.first[head_at + j], vectors.k[t * kPadded + j], sum);
    }
    sum = warp_sum(sum);
    const float v = shared_memory<WkvTile>().v[t * kColumns + column_id()];
    if (column < m.d) s.bonus[static_cast<int64_t>(row + t) * m.heads * m.n + head_at + column] = v * sum;
  }
}

template <int kValues, bool kSeven>
__device__ void advance_wkv(const WkvShape& s, int t, int turn, Column<kValues>& column) {
  constexpr int kPadded = Column<kValues>::kPadded;
  const WkvVectors vectors = wkv_vectors<kValues>(s);
  float read = 0, sum = 0, part[kValues];
  if (kSeven) {
    own_part(vectors.a + t * kPadded, part);
    for (int i = 0; i < kValues; ++i) read = fmaf(column.values[i], part[i], read);
    keep_sum(kRead, turn, read);
  }
  __syncthreads();
  if (kSeven) read = column_sum(kRead, turn);
  const float v = shared_memory<WkvTile>().v[t * kColumns + column_id()];
  float r[kValues], decay[kValues];
  own_part(vectors.r + t * kPadded, r);
  own_part(vectors.decay + t * kPadded, decay);
  own_part(vectors.k + t * kPadded, part);
  for (int i = 0; i < kValues; ++i) {
    if (!kSeven) sum = fmaf(column.values[i], r[i], sum);
    column.values[i] = fmaf(part[i], v, column.values[i] * decay[i]);
  }
  if (kSeven) {
    own_part(vectors.b + t * kPadded, part);
    for (int i = 0; i < kValues; ++i) {
      column.values[i] = fmaf(part[i], read, column.values[i]);
      sum = fmaf(column.values[i], r[i], sum);
    }
  }
  keep_sum(kResult, turn, sum);
}

template <int kValues, bool kSeven>
__global__ void wkv_kernel(WkvShape s) {
  const MatrixShape& m = s.matrix;
  Run run;
  if (!find_run(m.states, static_cast<int>(blockIdx.y), run)) return;
  const ColumnPlace place = place_of_column(m, run);
  Column<kValues> column;
  column.load(run.empty ? nullptr : place.state, m.n, m.d);
  const int n = run.end - run.first;
  for (int turn = 0; turn < n; ++turn) {
    const int t = turn % m.tile;
    if (t == 0) {
      const int count = n - turn < m.tile ? n - turn : m.tile;
      __syncthreads();  // the tile before has been read
      stage_wkv<kValues, kSeven>(s, run.first + turn, count);
      __syncthreads();
      write_bonus<kValues>(s, run.first + turn, count);
    }
    advance_wkv<kValues, kSeven>(s, t, turn, column);
    write_result(m, run, place, turn, s.out);
  }
  __syncthreads();
  write_result(m, run, place, n, s.out);
  if (place.state) column.store(place.state, m.n, m.d);
}

void wkv(const Prepared&, const Launch& launch, Stream& stream) {
  const TensorRef& r = launch.inputs[0];
  const int64_t heads = r.desc->shape[1], n = r.desc->shape[2];
  WkvShape s = {};
  s.matrix = matrix_shape(launch, heads, n, n);
  s.r = rows_at(r);
  s.k = rows_at(launch.inputs[1]);
  s.v = rows_at(launch.inputs[2]);
  s.w = rows_at(launch.inputs[3]);
  s.first = address<const float>(launch.inputs[4]);
  s.a = rows_at(launch.inputs[5]);
  s.b = rows_at(launch.inputs[6]);
  s.out = address<float>(launch.outputs[0]);
  s.bonus = address<float>(launch.outputs[1]);
  const bool seven = s.a.data;
  const dim3 grid(static_cast<unsigned>(s.matrix.heads * s.matrix.blocks), most_sequences(launch, r));
  with_values(s.matrix.n, [&](auto values) {
    constexpr int kValues = decltype(values)::value;
    const int vectors = seven ? 5 : 3;
    s.matrix.tile = tile_of<kValues>(vectors);
    const size_t room = sizeof(float) * static_cast<size_t>(s.matrix.tile * vectors * Column<kValues>::kPadded);
    launch_kernel(cuda_stream(stream), {grid, kThreads, room},
                  seven ? wkv_kernel<kValues, true> : wkv_kernel<kValues, false>, s);
  });
}

}  // namespace

std::span<const OpRecord> delta_rule_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kDeltaRule, supports_matrices, nothing_to_prepare, delta_rule},
      {Op::kWkv, supports_matrices, nothing_to_prepare, wkv},
  };
  return kRecords;
}

}  // namespace infer::cuda
