// paged_attention, and the kernels of sparse_attention. Attention closes a partial softmax after every kAttentionSplit
// entries and merges them in order, so that its result does not depend on how many blocks of threads share the work.
//
// Entries are positions, counted from the start of the context. kSparse: entries are those that a token has selected,
// counted from the first of them, or, without a selection, those of the cache, one per `stride` positions. Some tokens
// see none.
#include <algorithm>

#include "backends/cuda/attention_shape.cuh"
#include "backends/cuda/launch.h"

namespace infer::cuda {
namespace {

constexpr unsigned kThreads = 128;
constexpr int kMostHeads = 8;  // query heads of a KV head that share each load of a key
constexpr int kFewTokens = 8;  // up to this many tokens, tiles do not pay
constexpr int kChunks = 16, kMostChunks = 64, kBlocksWanted = 8;  // kBlocksWanted: per multiprocessor
constexpr int kLanesPerKey = 8;                                   // threads that share a dot product
constexpr size_t kMostRoom = 46 << 10;                            // bytes of dynamic shared memory

// What the threads of a block share: for each of its heads the query, the scores of a split, and the sums merged so
// far. In dynamic memory: [heads][key_dim], [heads][kAttentionSplit], [heads][value_dim].
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

// A block's work: heads [first, first + n) of one token.
struct Place {
  int64_t token;
  int kv_head, first, n;
  int position, sequence;
  Range seen;             // entries
  const int32_t* blocks;  // kSparse: the token's selected blocks, or null
};

// Where an entry is.
struct EntryPlace {
  uint8_t* block;
  int slot;
};
template <bool kSparse>
__device__ inline EntryPlace place_of(const AttentionShape& a, const Place& p, int i) {
  const CacheShape& s = a.cache;
  if (!kSparse) return {s.block_of(p.sequence, i), i % kBlockTokens};
  const int entry = p.blocks ? p.blocks[i / a.block] * a.block + i % a.block : i;
  return {s.block_of(p.sequence, s.position_of(entry)), s.slot_of(entry)};
}

// The entries of a token's selected blocks. The last block may have entries that the token does not see, and unused
// places after it hold -1. Every thread of the block must call it.
__device__ inline Range selected_entries(const AttentionShape& a, const int32_t* blocks, int visible) {
  float n = 0;  // exact: there are fewer than 2^24
  for (int i = static_cast<int>(threadIdx.x); i < a.count_of_blocks; i += static_cast<int>(kThreads)) {
    if (blocks[i] < 0) continue;
    const int left = visible - blocks[i] * a.block;
    n += static_cast<float>(left < a.block ? left > 0 ? left : 0 : a.block);
  }
  return {0, static_cast<int>(block_sum(n))};
}

// A lane's share of the dot products of a key with the queries.
template <int kHeads, typename Format>
__device__ inline void add_products(const Format& format, const uint8_t* key, int dim, bool vectors, const float* query,
                                    float (&dot)[kHeads]) {
  const int part = static_cast<int>(threadIdx.x) % kLanesPerKey;
  if (!vectors) {
    for (int d = part; d < dim; d += kLanesPerKey) {
      const float k = format.at(key, d);
      INFER_UNROLL
      for (int h = 0; h < kHeads; ++h) dot[h] = fmaf(k, query[h * dim + d], dot[h]);
    }
    return;
  }
  for (int d = 8 * part; d < dim; d += 8 * kLanesPerKey) {
    const Floats8 k = format.load8(key, d);
    INFER_UNROLL
    for (int h = 0; h < kHeads; ++h) {
      const Floats8 q = load_floats(query + h * dim + d);
      INFER_UNROLL
      for (int i = 0; i < 8; ++i) dot[h] = fmaf(k.at[i], q.at[i], dot[h]);
    }
  }
}

// Scores of the entries of one split that the token sees; -infinity for the others. REQUIRES a barrier before and
// after.
template <int kHeads, bool kSparse>
__device__ void score_split(const AttentionShape& a, const Place& p, int split, const Room& room) {
  const CacheShape& s = a.cache;
  const int part = static_cast<int>(threadIdx.x) % kLanesPerKey;
  for (int i = static_cast<int>(threadIdx.x) / kLanesPerKey; i < kAttentionSplit;
       i += static_cast<int>(kThreads) / kLanesPerKey) {
    const int position = split * kAttentionSplit + i;
    const bool seen = position >= p.seen.begin && position < p.seen.end;
    float dot[kHeads] = {};
    if (seen) {
      const EntryPlace at = place_of<kSparse>(a, p, position);
      const CacheRow key = {s.key(at.block, p.kv_head, at.slot), s.key_type};
      key.with([&](auto format) { add_products<kHeads>(format, key.data, s.key_dim, a.vectors, room.query, dot); });
    }
    INFER_UNROLL
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

// For each head: the factors of the earlier sums and of the split's own sums when they are merged.
template <int kHeads>
struct Factors {
  float before[kHeads], own[kHeads];
};

// Adds the weighted values of entries first, first + step, ... of a split to the sums of dimensions d to d + kWidth
// - 1.
template <int kHeads, bool kSparse, int kWidth>
__device__ void sum_values(const AttentionShape& a, const Place& p, int split, const Room& room, int d, int first,
                           int step, float (&sums)[kHeads][kWidth]) {
  const CacheShape& s = a.cache;
  const int start = split * kAttentionSplit;
  const int begin = p.seen.begin > start ? p.seen.begin : start;
  const int end = p.seen.end < start + kAttentionSplit ? p.seen.end : start + kAttentionSplit;
  CacheRow{nullptr, s.value_type}.with([&](auto format) {
    for (int position = begin + first; position < end; position += step) {
      const EntryPlace at = place_of<kSparse>(a, p, position);
      const uint8_t* const row = s.value(at.block, p.kv_head, at.slot);
      Floats8 v;
      if (kWidth == 1) v.at[0] = format.at(row, d);
      else v = format.load8(row, d);
      INFER_UNROLL
      for (int h = 0; h < kHeads; ++h) {
        const float weight = room.score[h * kAttentionSplit + position - start];
        INFER_UNROLL
        for (int i = 0; i < kWidth; ++i) sums[h][i] = fmaf(weight, v.at[i], sums[h][i]);
      }
    }
  });
}

// Adds the values of a split: a thread sums one dimension over all entries.
template <int kHeads, bool kSparse>
__device__ void add_values_by_dimension(const AttentionShape& a, const Place& p, int split, const Room& room,
                                        const Factors<kHeads>& factors) {
  const int dims = a.cache.value_dim;
  for (int d = static_cast<int>(threadIdx.x); d < dims; d += static_cast<int>(kThreads)) {
    float sums[kHeads][1] = {};
    sum_values<kHeads, kSparse, 1>(a, p, split, room, d, 0, 1, sums);
    INFER_UNROLL
    for (int h = 0; h < kHeads; ++h) {
      room.sum[h * dims + d] = room.sum[h * dims + d] * factors.before[h] + sums[h][0] * factors.own[h];
    }
  }
}

// Adds the values of a split in vectors: `lanes` lanes of a warp share a row, and each of the n groups of lanes takes
// every n-th entry. Their sums are added within each warp, then warp by warp. Every thread of the block must call it.
template <int kHeads, bool kSparse>
__device__ void add_values_in_vectors(const AttentionShape& a, const Place& p, int split, const Room& room,
                                      const Factors<kHeads>& factors) {
  const int dims = a.cache.value_dim, lane = static_cast<int>(threadIdx.x % kWarp);
  const int warp = static_cast<int>(threadIdx.x / kWarp), warps = static_cast<int>(kThreads / kWarp);
  int lanes = 1;
  while (lanes < static_cast<int>(kWarp) && 8 * lanes < dims) lanes *= 2;
  const int of_warp = static_cast<int>(kWarp) / lanes;
  for (int start = 0; start < dims; start += 8 * lanes) {
    const int d = start + 8 * (lane % lanes);
    float sums[kHeads][8] = {};
    if (d < dims) {
      sum_values<kHeads, kSparse, 8>(a, p, split, room, d, warp * of_warp + lane / lanes, warps * of_warp, sums);
    }
    INFER_UNROLL
    for (int h = 0; h < kHeads; ++h) {
      INFER_UNROLL
      for (int i = 0; i < 8; ++i) {
        for (int other = lanes; other < static_cast<int>(kWarp); other *= 2) {
          sums[h][i] += __shfl_xor_sync(kAllLanes, sums[h][i], other);
        }
      }
    }
    for (int turn = 0; turn < warps; ++turn) {
      if (warp == turn && lane < lanes && d < dims) {
        INFER_UNROLL
        for (int h = 0; h < kHeads; ++h) {
          INFER_UNROLL
          for (int i = 0; i < 8; ++i) {
            float& to = room.sum[h * dims + d + i];
            to = fmaf(sums[h][i], factors.own[h], turn == 0 ? to * factors.before[h] : to);
          }
        }
      }
      __syncthreads();
    }
  }
}

template <int kHeads, bool kSparse>
__device__ bool find_place(const AttentionShape& a, int64_t token, unsigned part, Place& p) {
  if (token >= a.count.rows() || (a.in_tiles && in_long_run(a, token))) return false;
  p.token = token;
  p.kv_head = static_cast<int>(part) / a.chunks;
  const int in_group = static_cast<int>(part) % a.chunks * kHeads;
  p.first = p.kv_head * a.group + in_group;
  p.n = a.group - in_group < kHeads ? a.group - in_group : kHeads;
  p.position = a.cache.positions[token];
  p.sequence = a.cache.sequences[token];
  p.blocks = nullptr;
  if (!kSparse) {
    p.seen = visible(a.params, p.position, a.cache.lengths[p.sequence]);
    return true;
  }
  const int entries = (p.position + 1) / a.cache.stride;
  if (a.blocks) {
    p.blocks = a.blocks + (token * a.selections + (a.selections > 1 ? p.kv_head : 0)) * a.count_of_blocks;
    p.seen = selected_entries(a, p.blocks, entries);
  } else {
    p.seen = {a.params.window > 0 && entries > a.params.window ? entries - a.params.window : 0, entries};
  }
  return true;
}

// Copies the queries of a block's heads to shared memory. Missing heads repeat the last one.
template <int kHeads>
__device__ void load_queries(const AttentionShape& a, const Place& p, const float* q, const Room& room) {
  const int dim = a.cache.key_dim;
  for (int i = static_cast<int>(threadIdx.x); i < kHeads * dim; i += static_cast<int>(kThreads)) {
    const int h = i / dim < p.n ? i / dim : p.n - 1;
    room.query[i] = q[p.token * a.q_stride + (p.first + h) * dim + i % dim];
  }
}

// Where a chunk of splits stores its partial results for attention_merge_kernel: [token, head, chunk, 2 + value_dim],
// the partial softmax and the sums. A total of 0 means that the chunk has no splits; its sums are not written.
__device__ inline int64_t part_at(const AttentionShape& a, int64_t token, int head, int chunk) {
  return ((token * a.n_head + head) * a.n_chunks + chunk) * (2 + a.cache.value_dim);
}

// Writes the results of a block's heads, or its partial results.
template <int kHeads>
__device__ void write_results(const AttentionShape& a, const Place& p, const Partial (&all)[kHeads], const Room& room,
                              float* out) {
  const int dims = a.cache.value_dim;
  INFER_UNROLL
  for (int h = 0; h < kHeads; ++h) {
    if (h >= p.n) continue;
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
    const float factor = last ? finish_head(a, all[h], p.token, head, threadIdx.x == 0) : 1.0f;
    for (int d = static_cast<int>(threadIdx.x); d < dims; d += static_cast<int>(kThreads)) {
      to[d] = room.sum[h * dims + d] * factor;
    }
  }
}

// The splits of chunk blockIdx.x of a token, one after another.
template <int kHeads, bool kSparse>
__global__ void attention_kernel(AttentionShape a, const float* q, float* out) {
  Place p;
  if (!find_place<kHeads, kSparse>(a, blockIdx.z, blockIdx.y, p)) return;
  const int first = p.seen.begin / kAttentionSplit;
  const int n = (p.seen.end + kAttentionSplit - 1) / kAttentionSplit - first, chunk = static_cast<int>(blockIdx.x);
  const int begin = first + n * chunk / a.n_chunks, end = first + n * (chunk + 1) / a.n_chunks;
  if (begin == end && a.n_chunks > 1) {
    for (int h = static_cast<int>(threadIdx.x); h < p.n; h += static_cast<int>(kThreads)) {
      out[part_at(a, p.token, p.first + h, chunk) + 1] = 0;
    }
    return;
  }
  const Room room = room_of(a.cache, kHeads);
  load_queries<kHeads>(a, p, q, room);
  for (int i = static_cast<int>(threadIdx.x); i < kHeads * a.cache.value_dim; i += static_cast<int>(kThreads)) {
    room.sum[i] = 0;
  }
  Partial all[kHeads];
  INFER_UNROLL
  for (int h = 0; h < kHeads; ++h) all[h] = {-INFINITY, 0};
  for (int split = begin; split < end; ++split) {
    __syncthreads();
    score_split<kHeads, kSparse>(a, p, split, room);
    __syncthreads();
    Factors<kHeads> factors;
    INFER_UNROLL
    for (int h = 0; h < kHeads; ++h) {
      const Merge m = merge(all[h], weigh_split(room.score + h * kAttentionSplit));
      all[h] = m.both;
      factors.before[h] = m.factor_a;
      factors.own[h] = m.factor_b;
    }
    __syncthreads();
    if (a.vectors) add_values_in_vectors<kHeads, kSparse>(a, p, split, room, factors);
    else add_values_by_dimension<kHeads, kSparse>(a, p, split, room, factors);
  }
  __syncthreads();
  write_results<kHeads>(a, p, all, room, out);
}

// Merges the chunks of one head of a token, in order.
__global__ void attention_merge_kernel(AttentionShape a, const float* parts, float* out) {
  const int64_t token = blockIdx.y;
  if (token >= a.count.rows() || (a.in_tiles && in_long_run(a, token))) return;
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
    out[(token * a.n_head + head) * dims + d] = sum * finish_head(a, all, token, head, d == 0);
  }
}

// Blocks that share the splits of a token: with --deterministic, the same for any batch; else enough to give every
// multiprocessor work.
int chunks_of(const OpDesc& op, const Context& context) {
  if (context.deterministic) return kChunks;
  const int64_t blocks = op.inputs[0]->shape[0] * op.cache->n_kv_head;
  return static_cast<int>(
      std::clamp<int64_t>(kBlocksWanted * context.properties.multiProcessorCount / blocks, 1, kMostChunks));
}

// Whether rows of the cache are read 8 values at a time.
bool in_vectors(const CacheShape& s) {
  const auto whole = [](DataType type, int dim, int64_t row) {
    return dim % 8 == 0 && (traits(type).quantized || row % 16 == 0);
  };
  const int64_t keys = int64_t{s.n_kv_head} * s.entries * s.key_row;
  return whole(s.key_type, s.key_dim, s.key_row) && whole(s.value_type, s.value_dim, s.value_row) && keys % 16 == 0 &&
         s.block_bytes % 16 == 0;
}

// Whether long runs of tokens are computed by attend_in_tiles().
bool in_tiles(const OpDesc& op, const Context& context) {
  return !context.deterministic && op.inputs[0]->shape[0] > kFewTokens && has_tiles(op);
}

// Calls f(integral constant) with the number of query heads that a block takes.
template <typename F>
void with_heads(const CacheShape& s, int group, F f) {
  int heads = 1;
  while (heads < kMostHeads && heads < group && room_bytes(s, 2 * heads) <= kMostRoom) heads *= 2;
  if (heads == 8) f(std::integral_constant<int, 8>());
  else if (heads == 4) f(std::integral_constant<int, 4>());
  else if (heads == 2) f(std::integral_constant<int, 2>());
  else f(std::integral_constant<int, 1>());
}

AttentionShape attention_shape(const Launch& launch, const Context& context, const AttentionInputs& inputs) {
  const TensorDesc& q = *launch.inputs[0].desc;
  AttentionShape a = {};
  a.cache = cache_shape(launch);
  a.count = row_count(launch, q);
  a.n_head = static_cast<int>(q.shape[1]);
  a.group = a.n_head / a.cache.n_kv_head;
  a.params = inputs.params;
  a.q_stride = q.row_stride;
  a.n_chunks = chunks_of(launch.op, context);
  a.in_tiles = in_tiles(launch.op, context);
  a.vectors = in_vectors(a.cache);
  a.sinks = address<const float>(inputs.sinks);
  a.log_sums = address<float>(inputs.log_sums);
  if (inputs.blocks) {
    const Shape& blocks = inputs.blocks.desc->shape;
    a.blocks = address<const int32_t>(inputs.blocks);
    a.selections = static_cast<int>(blocks[1]);
    a.count_of_blocks = static_cast<int>(blocks[2]);
    a.block = inputs.block;
  }
  return a;
}

void paged_attention(const Prepared&, const Launch& launch, Stream& stream) {
  AttentionInputs inputs;
  inputs.params = launch.param<AttentionParams>();
  inputs.sinks = launch.inputs[1];
  attend(launch, cuda_stream(stream), inputs);
}

bool supports_paged_attention(const OpDesc& op, const Device& device) {
  return supports_attention(op, device) && op.cache->stride == 1;
}

}  // namespace

bool supports_attention(const OpDesc& op, const Device& device) {
  const CacheDesc& cache = *op.cache;
  return supports_cache(op, device) &&
         sizeof(float) * static_cast<size_t>(cache.key_dim + kAttentionSplit + cache.value_dim) <= kMostRoom;
}

std::unique_ptr<Prepared> prepare_attention(const OpDesc& op, Device& device) {
  auto prepared = std::make_unique<Prepared>();
  const int chunks = chunks_of(op, static_cast<CudaDevice&>(device).context());
  const Shape& q = op.inputs[0]->shape;
  if (chunks > 1)
    prepared->scratch_bytes = sizeof(float) * static_cast<size_t>(q[0] * q[1] * chunks * (2 + op.cache->value_dim));
  return prepared;
}

void attend(const Launch& launch, CudaStream& stream, const AttentionInputs& inputs) {
  const TensorRef& q = launch.inputs[0];
  auto* out = address<float>(launch.outputs[0]);
  AttentionShape a = attention_shape(launch, stream.context(), inputs);
  float* const parts = a.n_chunks > 1 ? reinterpret_cast<float*>(scratch_address(launch)) : out;
  const auto tokens = static_cast<unsigned>(rows_of(q));
  if (a.in_tiles) attend_in_tiles(launch, stream, a);
  with_heads(a.cache, a.group, [&](auto heads) {
    constexpr int kHeads = decltype(heads)::value;
    a.chunks = (a.group + kHeads - 1) / kHeads;
    const dim3 grid(static_cast<unsigned>(a.n_chunks), static_cast<unsigned>(a.cache.n_kv_head * a.chunks), tokens);
    launch_kernel(stream, {grid, kThreads, room_bytes(a.cache, kHeads)},
                  a.log_sums ? attention_kernel<kHeads, true> : attention_kernel<kHeads, false>, a,
                  address<const float>(q), parts);
  });
  if (a.n_chunks == 1) return;
  launch_kernel(stream, {dim3(static_cast<unsigned>(a.n_head), tokens), kThreads}, attention_merge_kernel, a,
                static_cast<const float*>(parts), out);
}

std::span<const OpRecord> attention_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kPagedAttention, supports_paged_attention, prepare_attention, paged_attention},
  };
  return kRecords;
}

}  // namespace infer::cuda
