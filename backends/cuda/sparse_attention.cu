// select_positions and sparse_attention, whose kernels are in attention.cu. A row is one selection of a token:
// one kernel computes the scores of its entries, another selects from them.
#include <algorithm>

#include "backends/cuda/attention.cuh"
#include "backends/cuda/launch.h"
#include "ggml-like/error.h"

namespace infer::cuda {
namespace {

// The most entries of a context, and the most scores computed at a time, of one row or several.
constexpr int64_t kRowScores = 1 << 20, kMostScores = 1 << 22;

struct SelectShape {
  CacheShape cache;
  RowCount count;
  SelectParams params;
  int heads, selections;  // of a token
  int64_t q_stride, weights_stride;
  const float *q, *weights;
  float* scores;  // [rows of a launch, most_entries]
  int64_t most_entries;
  int32_t* out;
  int64_t first_row;  // of a launch

  __device__ int entries(int64_t token) const { return (cache.positions[token] + 1) / cache.stride; }
  __device__ int blocks(int entries) const { return (entries + params.block - 1) / params.block; }
};

// ---- Scores ----

constexpr unsigned kScoreThreads = 128;
constexpr int kKeyPart = 32;  // values of a key that a thread holds
constexpr size_t kMostQueryBytes = 40 << 10;

// Copies the queries of kHeads heads to shared memory, with zeros for heads that do not exist and past the last value
// of a key, up to a multiple of kKeyPart.
template <int kHeads>
__device__ void stage_queries(const SelectShape& s, int64_t token, int first_head, int end_head, int padded,
                              float* to) {
  const int dim = s.cache.key_dim;
  for (int i = static_cast<int>(threadIdx.x); i < kHeads * padded; i += static_cast<int>(kScoreThreads)) {
    const int head = first_head + i / padded, d = i % padded;
    to[i] = head < end_head && d < dim ? s.q[token * s.q_stride + static_cast<int64_t>(head) * dim + d] : 0.0f;
  }
}

// The dot products of a key with the staged queries.
template <int kHeads>
__device__ void multiply_key(const CacheRow& key, int dim, int padded, const float* queries, float (&dots)[kHeads]) {
  for (int h = 0; h < kHeads; ++h) dots[h] = 0;
  for (int first = 0; first < dim; first += kKeyPart) {
    float part[kKeyPart];
    for (int i = 0; i < kKeyPart; ++i) part[i] = first + i < dim ? key.at(first + i) : 0.0f;
    for (int h = 0; h < kHeads; ++h) {
      const auto* const query = reinterpret_cast<const float4*>(queries + h * padded + first);
      for (int i = 0; i < kKeyPart / 4; ++i) {
        const float4 four = query[i];
        dots[h] = fmaf(four.x, part[4 * i], dots[h]);
        dots[h] = fmaf(four.y, part[4 * i + 1], dots[h]);
        dots[h] = fmaf(four.z, part[4 * i + 2], dots[h]);
        dots[h] = fmaf(four.w, part[4 * i + 3], dots[h]);
      }
    }
  }
}

// The contribution of kHeads heads to the score of an entry: all of it where each row is one head.
template <int kHeads>
__device__ float add_heads(const SelectShape& s, int64_t token, int first_head, int end_head, float score,
                           const float (&dots)[kHeads]) {
  if (!s.params.sum_heads) return dots[0];
  for (int h = 0; h < kHeads && first_head + h < end_head; ++h) {
    if (!(dots[h] > 0)) continue;
    const float weight = s.weights ? s.weights[token * s.weights_stride + first_head + h] : 1.0f;
    score = fmaf(weight, dots[h], score);
  }
  return score;
}

// Blocks of threads share the entries of row blockIdx.y. A row that selects everything needs no scores.
template <int kHeads>
__global__ void index_scores_kernel(SelectShape s) {
  const CacheShape& c = s.cache;
  const int64_t row = s.first_row + blockIdx.y, token = row / s.selections;
  if (token >= s.count.rows()) return;
  const int n = s.entries(token), sequence = c.sequences[token];
  if (s.blocks(n) <= s.params.count) return;
  const int begin = s.params.sum_heads ? 0 : static_cast<int>(row % s.selections);
  const int end = s.params.sum_heads ? s.heads : begin + 1, padded = (c.key_dim + kKeyPart - 1) / kKeyPart * kKeyPart;
  auto* const queries = static_cast<float*>(dynamic_shared_memory());
  const auto threads = static_cast<int>(kScoreThreads);
  for (int first = static_cast<int>(blockIdx.x) * threads; first < n; first += static_cast<int>(gridDim.x) * threads) {
    const int entry = first + static_cast<int>(threadIdx.x);
    CacheRow key = {nullptr, c.key_type};
    if (entry < n) key.data = c.key(c.block_of(sequence, c.position_of(entry)), 0, c.slot_of(entry));
    float score = 0;
    for (int head = begin; head < end; head += kHeads) {
      __syncthreads();  // the queries before have been read
      stage_queries<kHeads>(s, token, head, end, padded, queries);
      __syncthreads();
      float dots[kHeads];
      if (!key.data) continue;
      multiply_key<kHeads>(key, c.key_dim, padded, queries, dots);
      score = add_heads<kHeads>(s, token, head, end, score, dots);
    }
    if (entry < n) s.scores[blockIdx.y * s.most_entries + entry] = score;
  }
}

// ---- Selection ----

constexpr unsigned kSelectThreads = 512, kSelectWarps = kSelectThreads / kWarp;
constexpr int kDigits = 256, kDigitsOfLane = kDigits / static_cast<int>(kWarp);

// The blocks of entries that a row selects from.
struct Choice {
  const float* scores;
  int entries, blocks, block, first_last;  // blocks from first_last on are always selected

  // An integer that sorts like the score; NaN counts as -infinity.
  __device__ uint32_t key(int b) const {
    float best = -INFINITY;
    const int end = (b + 1) * block < entries ? (b + 1) * block : entries;
    for (int e = b * block; e < end; ++e) best = scores[e] > best ? scores[e] : best;
    if (b >= first_last) best = INFINITY;
    const uint32_t bits = best == 0 ? 0 : __float_as_uint(best);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
  }
};

struct SelectRoom {
  int counts[kDigits];
  int digit, left;
  int above[kSelectWarps], equal[kSelectWarps];
};

// Counts the keys with each digit at `shift`, among those whose bits above it are `prefix`. Lanes with the same digit
// are counted in one addition.
__device__ void count_digits(const Choice& c, uint32_t prefix, int shift, int* counts) {
  const unsigned lane = threadIdx.x % kWarp;
  for (int first = static_cast<int>(threadIdx.x - lane); first < c.blocks; first += static_cast<int>(kSelectThreads)) {
    const int b = first + static_cast<int>(lane);
    const uint32_t key = b < c.blocks ? c.key(b) : 0;
    const bool same = b < c.blocks && (shift == 24 || key >> (shift + 8) == prefix);
    const uint32_t digit = same ? key >> shift & 255u : static_cast<uint32_t>(kDigits);
    const unsigned peers = __match_any_sync(kAllLanes, digit);
    if (same && lane + 1 == static_cast<unsigned>(__ffs(static_cast<int>(peers)))) {
      atomicAdd(&counts[digit], __popc(peers));
    }
  }
}

// One warp finds the digit of the left-th largest key, and how many of the `left` largest keys have it. Lane 0 has the
// largest digits.
__device__ void choose_digit(SelectRoom& room, int left) {
  const int lane = static_cast<int>(threadIdx.x), highest = kDigits - 1 - lane * kDigitsOfLane;
  int own = 0;
  for (int i = 0; i < kDigitsOfLane; ++i) own += room.counts[highest - i];
  int before = own;
  for (int lanes = 1; lanes < static_cast<int>(kWarp); lanes *= 2) {
    const int lower = __shfl_up_sync(kAllLanes, before, static_cast<unsigned>(lanes));
    if (lane >= lanes) before += lower;
  }
  before -= own;
  if (before >= left || before + own < left) return;
  int digit = highest;
  for (; before + room.counts[digit] < left; --digit) before += room.counts[digit];
  room.digit = digit;
  room.left = left - before;
}

// The key of the last selected block, and how many blocks with this key are selected.
struct Threshold {
  uint32_t key;
  int left;
};
__device__ Threshold find_threshold(const Choice& c, int count, SelectRoom& room) {
  Threshold t = {0, count};
  for (int shift = 24; shift >= 0; shift -= 8) {
    __syncthreads();  // the digit before has been read
    for (int i = static_cast<int>(threadIdx.x); i < kDigits; i += static_cast<int>(kSelectThreads)) room.counts[i] = 0;
    __syncthreads();
    count_digits(c, t.key, shift, room.counts);
    __syncthreads();
    if (threadIdx.x < kWarp) choose_digit(room, t.left);
    __syncthreads();
    t = {t.key << 8 | static_cast<uint32_t>(room.digit), room.left};
  }
  return t;
}

// Lanes whose block is above the threshold, or equal to it.
struct Lanes {
  unsigned above, equal;
};
__device__ inline Lanes compare_keys(const Choice& c, const Threshold& t, int b, int end) {
  const uint32_t key = b < end ? c.key(b) : 0;
  return {__ballot_sync(kAllLanes, b < end && key > t.key), __ballot_sync(kAllLanes, b < end && key == t.key)};
}

// Writes the numbers of the selected blocks in order: all above the threshold, and the first ones equal to it. Each
// warp has a range of blocks, and first counts what it will write.
__device__ void write_selected(const Choice& c, const Threshold& t, SelectRoom& room, int32_t* to) {
  const auto warp = static_cast<int>(threadIdx.x / kWarp), lane = static_cast<int>(threadIdx.x % kWarp);
  const int range = (c.blocks + static_cast<int>(kSelectWarps) - 1) / static_cast<int>(kSelectWarps);
  const int begin = warp * range < c.blocks ? warp * range : c.blocks;
  const int end = begin + range < c.blocks ? begin + range : c.blocks;
  int above = 0, equal = 0;
  for (int first = begin; first < end; first += static_cast<int>(kWarp)) {
    const Lanes lanes = compare_keys(c, t, first + lane, end);
    above += __popc(lanes.above);
    equal += __popc(lanes.equal);
  }
  if (lane == 0) {
    room.above[warp] = above;
    room.equal[warp] = equal;
  }
  __syncthreads();
  above = equal = 0;
  for (int i = 0; i < warp; ++i) {
    above += room.above[i];
    equal += room.equal[i];
  }
  const unsigned lower = (1u << lane) - 1u;
  for (int first = begin; first < end; first += static_cast<int>(kWarp)) {
    const Lanes lanes = compare_keys(c, t, first + lane, end);
    const int equal_before = equal + __popc(lanes.equal & lower);
    const bool chosen = (lanes.above >> lane & 1) != 0 || ((lanes.equal >> lane & 1) != 0 && equal_before < t.left);
    if (chosen)
      to[above + __popc(lanes.above & lower) + (equal_before < t.left ? equal_before : t.left)] = first + lane;
    above += __popc(lanes.above);
    equal += __popc(lanes.equal);
  }
}

__global__ void __launch_bounds__(kSelectThreads) select_positions_kernel(SelectShape s) {
  const int64_t row = s.first_row + blockIdx.x, token = row / s.selections;
  if (token >= s.count.rows()) return;
  const int entries = s.entries(token), blocks = s.blocks(entries),
            width = s.params.count + (s.params.unfinished ? 1 : 0);
  const int n = blocks < s.params.count ? blocks : s.params.count;
  int32_t* const to = s.out + row * width;
  if (n == blocks) {
    for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(kSelectThreads)) to[i] = i;
  } else {
    const Choice choice = {s.scores + blockIdx.x * s.most_entries, entries, blocks, s.params.block,
                           blocks - s.params.n_last};
    SelectRoom& room = shared_memory<SelectRoom>();
    write_selected(choice, find_threshold(choice, n, room), room, to);
  }
  const bool further = s.params.unfinished && (s.cache.positions[token] + 1) % s.cache.stride != 0;
  for (int i = n + static_cast<int>(threadIdx.x); i < width; i += static_cast<int>(kSelectThreads)) {
    to[i] = further && i == n ? blocks : -1;
  }
}

// ---- Launches ----

int64_t scores_at_once(const OpDesc& op) {
  const Shape& out = op.outputs[0]->shape;
  return std::min(out[0] * out[1] * kRowScores, kMostScores);
}

// Heads whose queries are staged together: several for a sum, otherwise the one that selects.
int heads_at_once(const SelectParams& params, int64_t heads) { return !params.sum_heads ? 1 : heads <= 4 ? 4 : 8; }

size_t query_bytes(int key_dim, int heads) {
  return sizeof(float) * static_cast<size_t>((key_dim + kKeyPart - 1) / kKeyPart * kKeyPart * heads);
}

bool supports_select(const OpDesc& op, const Device& device) {
  const int heads = heads_at_once(op.param<SelectParams>(), op.inputs[0]->shape[1]);
  return supports_cache(op, device) && query_bytes(op.cache->key_dim, heads) <= kMostQueryBytes;
}

std::unique_ptr<Prepared> prepare_select(const OpDesc& op, Device&) {
  auto prepared = std::make_unique<Prepared>();
  prepared->scratch_bytes = sizeof(float) * static_cast<size_t>(scores_at_once(op));
  return prepared;
}

SelectShape select_shape(const Launch& launch) {
  const TensorRef &q = launch.inputs[0], &weights = launch.inputs[1], &out = launch.outputs[0];
  SelectShape s = {};
  s.cache = cache_shape(launch);
  s.count = row_count(launch, *q.desc);
  s.params = launch.param<SelectParams>();
  s.heads = static_cast<int>(q.desc->shape[1]);
  s.selections = static_cast<int>(out.desc->shape[1]);
  s.q_stride = q.desc->row_stride;
  s.weights_stride = weights ? weights.desc->row_stride : 0;
  s.q = address<const float>(q);
  s.weights = address<const float>(weights);
  s.scores = reinterpret_cast<float*>(scratch_address(launch));
  s.most_entries = std::max<int64_t>(int64_t{s.cache.table_stride} * kBlockTokens / s.cache.stride, 1);
  s.out = address<int32_t>(out);
  return s;
}

// Each range of rows is scored, then selected from.
void select_positions(const Prepared&, const Launch& launch, Stream& st) {
  CudaStream& stream = cuda_stream(st);
  SelectShape s = select_shape(launch);
  if (s.most_entries > kRowScores) {
    throw Error(ErrorCode::kUnsupported, concat("[", stream.context().name, "] expected a context of at most ",
                                                kRowScores, " index keys, found ", s.most_entries, ". Lower -c."));
  }
  const int heads = heads_at_once(s.params, s.heads);
  const size_t room = query_bytes(s.cache.key_dim, heads);
  const int64_t rows = rows_of(launch.outputs[0]) * s.selections;
  const int64_t range = std::clamp(scores_at_once(launch.op) / s.most_entries, int64_t{1}, kMostBlocksY);
  for (s.first_row = 0; s.first_row < rows; s.first_row += range) {
    const auto count = static_cast<unsigned>(std::min(range, rows - s.first_row));
    const dim3 grid(std::min(blocks_for(s.most_entries, kScoreThreads), std::max(2048 / count, 8u)), count);
    launch_kernel(stream, {grid, kScoreThreads, room},
                  heads == 1   ? index_scores_kernel<1>
                  : heads == 4 ? index_scores_kernel<4>
                               : index_scores_kernel<8>,
                  s);
    launch_kernel(stream, {dim3(count), kSelectThreads}, select_positions_kernel, s);
  }
}

void sparse_attention(const Prepared&, const Launch& launch, Stream& stream) {
  const SparseAttentionParams& params = launch.param<SparseAttentionParams>();
  AttentionInputs inputs;
  inputs.params.scale = params.scale;
  inputs.params.window = params.window;
  inputs.blocks = launch.inputs[1];
  inputs.sinks = launch.inputs[2];
  inputs.log_sums = launch.outputs[1];
  inputs.block = params.block;
  attend(launch, cuda_stream(stream), inputs);
}

}  // namespace

std::span<const OpRecord> sparse_attention_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kSelectPositions, supports_select, prepare_select, select_positions},
      {Op::kSparseAttention, supports_attention, prepare_attention, sparse_attention},
  };
  return kRecords;
}

}  // namespace infer::cuda
