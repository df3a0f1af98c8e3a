// kv_store and paged_attention. Attention closes a partial softmax after every kAttentionSplit positions and merges
// these in order, so that its result does not depend on how many blocks of threads share the work.
#include <algorithm>

#include "backends/cuda/cache.cuh"
#include "backends/cuda/cuda_ops.h"
#include "backends/cuda/launch.h"

namespace infer::cuda {
namespace {

constexpr unsigned kThreads = 128;
constexpr int kMostHeads = 8;  // query heads of a KV head that share the reading of a key
constexpr int kFewTokens = 8;  // up to so many, the splits of a token are divided among kChunks blocks
constexpr int kChunks = 16;
constexpr int kLanesPerKey = 8;  // threads that share a dot product

CacheShape cache_shape(const Launch& launch) {
  const CacheDesc& d = *launch.cache.desc;
  const StepLayout& layout = *launch.step_layout;
  const int32_t* const step = step_address(launch);
  CacheShape s = {};
  s.data =
      reinterpret_cast<uint8_t*>(static_cast<const CudaBuffer&>(*launch.cache.buffer).data() + launch.cache.offset);
  s.n_kv_head = d.n_kv_head;
  s.key_dim = d.key_dim;
  s.value_dim = d.value_dim;
  s.key_type = d.key_type;
  s.value_type = d.latent ? d.key_type : d.value_type;
  s.key_row = static_cast<int>(row_bytes(d.key_type, d.key_dim));
  s.value_row = static_cast<int>(row_bytes(s.value_type, d.stored_value_dim()));
  s.latent = d.latent;
  s.stride = d.stride;
  s.entries = d.entries_per_block();
  s.block_bytes = static_cast<int64_t>(s.n_kv_head) * s.entries * (s.key_row + s.value_row);
  s.positions = step + layout.positions_at;
  s.sequences = step + layout.sequences_at;
  s.lengths = step + layout.lengths_at;
  s.table = step + layout.tables_at(d.group);
  s.table_stride = layout.capacity.blocks_per_sequence;
  return s;
}

// ---- kv_store ----

struct RowScale {
  uint16_t half;
  float inverse;  // 0 for a scale of 0
};
__device__ inline RowScale row_scale(float d) {
  const uint16_t half = float_to_half(d > 65504.0f ? 65504.0f : d < -65504.0f ? -65504.0f : d);
  const float kept = half_to_float(half);
  return {half, kept != 0 ? 1.0f / kept : 0.0f};
}
// NaN becomes the lowest code.
__device__ inline int code_of(float x, float lowest, float highest) {
  x = x > lowest ? x : lowest;
  return __float2int_rn(x < highest ? x : highest);
}

// A warp stores up to 32 values of a row, beginning at `first`, a multiple of 32.
__device__ void store_row(DataType type, const float* x, int first, int dim, uint8_t* row) {
  const int lane = static_cast<int>(threadIdx.x % kWarp), i = first + lane;
  const float value = i < dim ? x[i] : 0.0f;
  if (type == DataType::kF32) {
    if (i < dim) reinterpret_cast<float*>(row)[i] = value;
  } else if (type == DataType::kF16) {
    if (i < dim) reinterpret_cast<uint16_t*>(row)[i] = float_to_half(value);
  } else if (type == DataType::kBF16) {
    if (i < dim) reinterpret_cast<uint16_t*>(row)[i] = float_to_bfloat(value);
  } else {
    // The first value of the largest magnitude; NaN is never the largest.
    float magnitude = fabsf(value) >= 0 ? fabsf(value) : 0.0f;
    const float largest = warp_max(magnitude);
    if (type == DataType::kQ8_0) {
      BlockQ8_0& b = reinterpret_cast<BlockQ8_0*>(row)[first / kBlock32];
      const RowScale scale = row_scale(largest / 127.0f);
      if (lane == 0) b.d = scale.half;
      b.qs[lane] = static_cast<int8_t>(code_of(value * scale.inverse, -127, 127));
    } else {
      BlockQ4_0& b = reinterpret_cast<BlockQ4_0*>(row)[first / kBlock32];
      const unsigned at_largest = __ballot_sync(kAllLanes, magnitude == largest && largest > 0);
      const float leader = __shfl_sync(kAllLanes, value, at_largest ? __ffs(static_cast<int>(at_largest)) - 1 : 0);
      const RowScale scale = row_scale(at_largest ? leader / -8.0f : 0.0f);
      const int code = 8 + code_of(value * scale.inverse, -8, 7);
      const int high = __shfl_down_sync(kAllLanes, code, 16);
      if (lane == 0) b.d = scale.half;
      if (lane < 16) b.qs[lane] = static_cast<uint8_t>(code | high << 4);
    }
  }
}

// A warp per 32 values of a head's key or value.
__global__ void kv_store_kernel(CacheShape s, RowCount count, const float* k, int64_t k_stride, const float* v,
                                int64_t v_stride) {
  const int64_t token = blockIdx.y;
  if (token >= count.rows()) return;
  const int key_parts = (s.key_dim + 31) / 32, parts = key_parts + (s.latent ? 0 : (s.value_dim + 31) / 32);
  const int i = static_cast<int>(blockIdx.x * (kThreads / kWarp) + threadIdx.x / kWarp), head = i / parts,
            part = i % parts;
  if (head >= s.n_kv_head) return;
  const int position = s.positions[token];
  if ((position + 1) % s.stride != 0) return;  // an entry is stored by the last of its positions
  uint8_t* const block = s.block_of(s.sequences[token], position);
  const int slot = position / s.stride % s.entries;
  if (part < key_parts) {
    store_row(s.key_type, k + token * k_stride + head * s.key_dim, 32 * part, s.key_dim, s.key(block, head, slot));
  } else {
    store_row(s.value_type, v + token * v_stride + head * s.value_dim, 32 * (part - key_parts), s.value_dim,
              s.value(block, head, slot));
  }
}

bool supports_cache(const OpDesc& op, const Device&) {
  const CacheDesc& cache = *op.cache;
  return is_cache_type(cache.key_type) && (cache.latent || is_cache_type(cache.value_type));
}

void kv_store(const Prepared&, const Launch& launch, Stream& stream) {
  const CacheShape s = cache_shape(launch);
  const TensorRef &k = launch.inputs[0], &v = launch.inputs[1];
  const int parts = (s.key_dim + 31) / 32 + (s.latent ? 0 : (s.value_dim + 31) / 32);
  const dim3 grid(blocks_for(int64_t{s.n_kv_head} * parts, kThreads / kWarp), static_cast<unsigned>(rows_of(k)));
  launch_kernel(cuda_stream(stream), {grid, kThreads}, kv_store_kernel, s, row_count(launch, *k.desc),
                address<const float>(k), k.desc->row_stride, address<const float>(v), v ? v.desc->row_stride : 0);
}

// ---- paged_attention ----

struct AttentionShape {
  CacheShape cache;
  RowCount count;
  int n_head, group, chunks;  // query heads, those of a KV head, parts of these that a block takes
  AttentionParams params;
  int64_t q_stride;
  int n_chunks;  // blocks that share the splits of a token
};

struct Range {
  int begin, end;
};
// The positions that a token sees (op.h).
__device__ inline Range visible(const AttentionParams& p, int position, int length) {
  const int before = p.causal ? p.window - 1 : p.window / 2;
  const int end = p.causal ? position + 1 : length;
  if (p.window == 0) return {0, end};
  if (p.chunked) return {position / p.window * p.window, end};
  const int after = position + before + 1;
  return {position - before > 0 ? position - before : 0, p.causal ? end : after < end ? after : end};
}

// https://arxiv.org/abs/2108.12409: geometric slopes; the heads after the largest power of two are interleaved from the
// next one.
__device__ inline float alibi_slope(int head, int n_head, float max_bias) {
  if (max_bias <= 0) return 0;
  int power = 1;
  while (power * 2 <= n_head) power *= 2;
  const float exponent = head < power
                             ? -max_bias * static_cast<float>(head + 1) / static_cast<float>(power)
                             : -max_bias / 2 * static_cast<float>(2 * (head - power) + 1) / static_cast<float>(power);
  return exp2f(exponent);
}

// What a block of threads shares: for each of its heads the query, the scores of a split, and the sums of what has been
// merged. In dynamic memory: [heads][key_dim], [heads][kAttentionSplit], [heads][value_dim].
struct Room {
  float *query, *score, *sum;
};
__device__ inline Room room_of(const CacheShape& s, int heads) {
  auto* const begin = static_cast<float*>(dynamic_shared_memory());
  return {begin, begin + heads * s.key_dim, begin + heads * (s.key_dim + kAttentionSplit)};
}
size_t room_bytes(const CacheShape& s, int heads) {
  return sizeof(float) * static_cast<size_t>(heads) * static_cast<size_t>(s.key_dim + kAttentionSplit + s.value_dim);
}

// A block's work: heads first .. first + n of one token.
struct Place {
  int64_t token;
  int kv_head, first, n;
  int position, sequence;
  Range seen;
};

// Scores of the positions of one split that the token sees; -infinity for the others. REQUIRES a barrier before and
// after.
template <int kHeads>
__device__ void score_split(const AttentionShape& a, const Place& p, int split, const Room& room) {
  const CacheShape& s = a.cache;
  const int part = static_cast<int>(threadIdx.x) % kLanesPerKey;
  for (int i = static_cast<int>(threadIdx.x) / kLanesPerKey; i < kAttentionSplit;
       i += static_cast<int>(kThreads) / kLanesPerKey) {
    const int position = split * kAttentionSplit + i;
    const bool seen = position >= p.seen.begin && position < p.seen.end;
    float dot[kHeads] = {};
    if (seen) {
      const CacheRow key = {s.key(s.block_of(p.sequence, position), p.kv_head, position % kBlockTokens), s.key_type};
      for (int d = part; d < s.key_dim; d += kLanesPerKey) {
        const float k = key.at(d);
        for (int h = 0; h < kHeads; ++h) dot[h] = fmaf(k, room.query[h * s.key_dim + d], dot[h]);
      }
    }
    for (int h = 0; h < kHeads; ++h) {
      for (int lanes = kLanesPerKey / 2; lanes > 0; lanes /= 2) dot[h] += __shfl_xor_sync(kAllLanes, dot[h], lanes);
      float score = dot[h] * a.params.scale;
      if (a.params.softcap > 0) score = a.params.softcap * tanhf(score / a.params.softcap);
      const int distance = p.position > position ? p.position - position : position - p.position;
      score -= alibi_slope(p.first + h, a.n_head, a.params.alibi_max_bias) * static_cast<float>(distance);
      if (part == 0) room.score[h * kAttentionSplit + i] = seen ? score : -INFINITY;
    }
  }
}

// A partial softmax: the largest score, and the sum of the weights relative to it.
struct Partial {
  float largest, total;
};

// Turns the scores of one head into weights, in place.
__device__ inline Partial weigh_split(float* score) {
  float largest = -INFINITY, total = 0;
  for (int i = static_cast<int>(threadIdx.x); i < kAttentionSplit; i += static_cast<int>(kThreads)) {
    largest = fmaxf(largest, score[i]);
  }
  largest = block_max(largest);
  for (int i = static_cast<int>(threadIdx.x); i < kAttentionSplit; i += static_cast<int>(kThreads)) {
    const float weight = score[i] == -INFINITY ? 0.0f : expf(score[i] - largest);
    score[i] = weight;
    total += weight;
  }
  return {largest, block_sum(total)};
}

// Dimension d of the weighted sum of a split's values.
template <int kHeads>
__device__ void sum_values(const AttentionShape& a, const Place& p, int split, const Room& room, int d,
                           float (&sums)[kHeads]) {
  const CacheShape& s = a.cache;
  const int start = split * kAttentionSplit;
  const int begin = p.seen.begin > start ? p.seen.begin : start;
  const int end = p.seen.end < start + kAttentionSplit ? p.seen.end : start + kAttentionSplit;
  for (int position = begin; position < end; ++position) {
    const CacheRow row = {s.value(s.block_of(p.sequence, position), p.kv_head, position % kBlockTokens), s.value_type};
    const float v = row.at(d);
    for (int h = 0; h < kHeads; ++h) sums[h] = fmaf(room.score[h * kAttentionSplit + position - start], v, sums[h]);
  }
}

// Merges b into a; the factors of what belongs to each.
struct Merge {
  Partial both;
  float factor_a, factor_b;
};
__device__ inline Merge merge(const Partial& a, const Partial& b) {
  const float largest = fmaxf(a.largest, b.largest);
  const float fa = a.total > 0 ? expf(a.largest - largest) : 0.0f, fb = b.total > 0 ? expf(b.largest - largest) : 0.0f;
  return {{largest, a.total * fa + b.total * fb}, fa, fb};
}

template <int kHeads>
__device__ bool find_place(const AttentionShape& a, int64_t token, unsigned part, Place& p) {
  if (token >= a.count.rows()) return false;
  p.token = token;
  p.kv_head = static_cast<int>(part) / a.chunks;
  const int in_group = static_cast<int>(part) % a.chunks * kHeads;
  p.first = p.kv_head * a.group + in_group;
  p.n = a.group - in_group < kHeads ? a.group - in_group : kHeads;
  p.position = a.cache.positions[token];
  p.sequence = a.cache.sequences[token];
  p.seen = visible(a.params, p.position, a.cache.lengths[p.sequence]);
  return true;
}

// Copies the queries of a block's heads to shared memory. Heads that it does not have get the last one's.
template <int kHeads>
__device__ void load_queries(const AttentionShape& a, const Place& p, const float* q, const Room& room) {
  const int dim = a.cache.key_dim;
  for (int i = static_cast<int>(threadIdx.x); i < kHeads * dim; i += static_cast<int>(kThreads)) {
    const int h = i / dim < p.n ? i / dim : p.n - 1;
    room.query[i] = q[p.token * a.q_stride + (p.first + h) * dim + i % dim];
  }
}

// The result of a head: with the sink, which is one more score without a value.
__device__ inline float final_factor(const Partial& all, const float* sinks, int head) {
  if (!sinks) return 1.0f / all.total;
  const Merge m = merge(all, {sinks[head], 1.0f});
  return m.factor_a / m.both.total;
}

// What a chunk of splits leaves for attention_merge_kernel: [token, head, chunk, 2 + value_dim], the partial softmax
// and the sums. A total of 0 stands alone: the chunk has no splits.
__device__ inline int64_t part_at(const AttentionShape& a, int64_t token, int head, int chunk) {
  return ((token * a.n_head + head) * a.n_chunks + chunk) * (2 + a.cache.value_dim);
}

// Writes the results of a block's heads, or its parts of them.
template <int kHeads>
__device__ void write_results(const AttentionShape& a, const Place& p, const Partial (&all)[kHeads], const Room& room,
                              const float* sinks, float* out) {
  const int dims = a.cache.value_dim;
  for (int h = 0; h < p.n; ++h) {
    const int head = p.first + h;
    const bool last = a.n_chunks == 1;
    float* to =
        out + (last ? (p.token * a.n_head + head) * dims : part_at(a, p.token, head, static_cast<int>(blockIdx.x)));
    if (!last) {
      if (threadIdx.x == 0) {
        to[0] = all[h].largest;
        to[1] = all[h].total;
      }
      to += 2;
    }
    const float factor = last ? final_factor(all[h], sinks, head) : 1.0f;
    for (int d = static_cast<int>(threadIdx.x); d < dims; d += static_cast<int>(kThreads)) {
      to[d] = room.sum[h * dims + d] * factor;
    }
  }
}

// The splits of chunk blockIdx.x of a token, one after another.
template <int kHeads>
__global__ void attention_kernel(AttentionShape a, const float* q, const float* sinks, float* out) {
  Place p;
  if (!find_place<kHeads>(a, blockIdx.z, blockIdx.y, p)) return;
  const int first = p.seen.begin / kAttentionSplit;
  const int n = (p.seen.end + kAttentionSplit - 1) / kAttentionSplit - first, chunk = static_cast<int>(blockIdx.x);
  const int begin = first + n * chunk / a.n_chunks, end = first + n * (chunk + 1) / a.n_chunks;
  if (begin == end) {
    for (int h = static_cast<int>(threadIdx.x); h < p.n; h += static_cast<int>(kThreads)) {
      out[part_at(a, p.token, p.first + h, chunk) + 1] = 0;
    }
    return;
  }
  const Room room = room_of(a.cache, kHeads);
  const int dims = a.cache.value_dim;
  load_queries<kHeads>(a, p, q, room);
  // Each thread sums the same dimensions of every head from here to the end.
  for (int d = static_cast<int>(threadIdx.x); d < dims; d += static_cast<int>(kThreads)) {
    for (int h = 0; h < kHeads; ++h) room.sum[h * dims + d] = 0;
  }
  Partial all[kHeads];
  for (int h = 0; h < kHeads; ++h) all[h] = {-INFINITY, 0};
  for (int split = begin; split < end; ++split) {
    __syncthreads();
    score_split<kHeads>(a, p, split, room);
    __syncthreads();
    float factor[kHeads], own_factor[kHeads];
    for (int h = 0; h < kHeads; ++h) {
      const Merge m = merge(all[h], weigh_split(room.score + h * kAttentionSplit));
      all[h] = m.both;
      factor[h] = m.factor_a;
      own_factor[h] = m.factor_b;
    }
    __syncthreads();
    for (int d = static_cast<int>(threadIdx.x); d < dims; d += static_cast<int>(kThreads)) {
      float sums[kHeads] = {};
      sum_values<kHeads>(a, p, split, room, d, sums);
      for (int h = 0; h < kHeads; ++h) {
        room.sum[h * dims + d] = room.sum[h * dims + d] * factor[h] + sums[h] * own_factor[h];
      }
    }
  }
  write_results<kHeads>(a, p, all, room, sinks, out);
}

// Merges the chunks of one head of a token, in order.
__global__ void attention_merge_kernel(AttentionShape a, const float* parts, const float* sinks, float* out) {
  const int64_t token = blockIdx.y;
  if (token >= a.count.rows()) return;
  const int head = static_cast<int>(blockIdx.x), dims = a.cache.value_dim;
  for (int d = static_cast<int>(threadIdx.x); d < dims; d += static_cast<int>(kThreads)) {
    Partial all = {-INFINITY, 0};
    float sum = 0;
    for (int chunk = 0; chunk < a.n_chunks; ++chunk) {
      const float* const part = parts + part_at(a, token, head, chunk);
      if (part[1] == 0) continue;  // no splits
      const Merge m = merge(all, {part[0], part[1]});
      all = m.both;
      sum = sum * m.factor_a + part[2 + d] * m.factor_b;
    }
    out[(token * a.n_head + head) * dims + d] = sum * final_factor(all, sinks, head);
  }
}

// With --deterministic, the same for any batch.
int chunks_of(const OpDesc& op, const Context& context) {
  return context.deterministic || op.inputs[0]->shape[0] <= kFewTokens ? kChunks : 1;
}

bool supports_attention(const OpDesc& op, const Device& device) {
  const CacheDesc& cache = *op.cache;
  return supports_cache(op, device) && cache.stride == 1 &&
         sizeof(float) * static_cast<size_t>(cache.key_dim + kAttentionSplit + cache.value_dim) <= (48 << 10);
}

std::unique_ptr<Prepared> prepare_attention(const OpDesc& op, Device& device) {
  auto prepared = std::make_unique<Prepared>();
  const int chunks = chunks_of(op, static_cast<CudaDevice&>(device).context());
  const Shape& q = op.inputs[0]->shape;
  if (chunks > 1)
    prepared->scratch_bytes = sizeof(float) * static_cast<size_t>(q[0] * q[1] * chunks * (2 + op.cache->value_dim));
  return prepared;
}

// Calls f(integral constant) with the number of query heads that a block takes.
template <typename F>
void with_heads(const CacheShape& s, int group, F f) {
  int heads = 1;
  while (heads < kMostHeads && heads < group && room_bytes(s, 2 * heads) <= (48 << 10)) heads *= 2;
  if (heads == 8) f(std::integral_constant<int, 8>());
  else if (heads == 4) f(std::integral_constant<int, 4>());
  else if (heads == 2) f(std::integral_constant<int, 2>());
  else f(std::integral_constant<int, 1>());
}

AttentionShape attention_shape(const Launch& launch, const Context& context) {
  const TensorDesc& q = *launch.inputs[0].desc;
  AttentionShape a = {};
  a.cache = cache_shape(launch);
  a.count = row_count(launch, q);
  a.n_head = static_cast<int>(q.shape[1]);
  a.group = a.n_head / a.cache.n_kv_head;
  a.params = launch.param<AttentionParams>();
  a.q_stride = q.row_stride;
  a.n_chunks = chunks_of(launch.op, context);
  return a;
}

void paged_attention(const Prepared&, const Launch& launch, Stream& s) {
  CudaStream& stream = cuda_stream(s);
  const TensorRef& q = launch.inputs[0];
  const auto* sinks = address<const float>(launch.inputs[1]);
  auto* out = address<float>(launch.outputs[0]);
  AttentionShape a = attention_shape(launch, stream.context());
  float* const parts = a.n_chunks > 1 ? reinterpret_cast<float*>(scratch_address(launch)) : out;
  const auto tokens = static_cast<unsigned>(rows_of(q));
  with_heads(a.cache, a.group, [&](auto heads) {
    constexpr int kHeads = decltype(heads)::value;
    a.chunks = (a.group + kHeads - 1) / kHeads;
    const dim3 grid(static_cast<unsigned>(a.n_chunks), static_cast<unsigned>(a.cache.n_kv_head * a.chunks), tokens);
    launch_kernel(stream, {grid, kThreads, room_bytes(a.cache, kHeads)}, attention_kernel<kHeads>, a,
                  address<const float>(q), sinks, parts);
  });
  if (a.n_chunks == 1) return;
  launch_kernel(stream, {dim3(static_cast<unsigned>(a.n_head), tokens), kThreads}, attention_merge_kernel, a,
                static_cast<const float*>(parts), sinks, out);
}

}  // namespace

std::span<const OpRecord> attention_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kKvStore, supports_cache, nothing_to_prepare, kv_store},
      {Op::kPagedAttention, supports_attention, prepare_attention, paged_attention},
  };
  return kRecords;
}

}  // namespace infer::cuda
