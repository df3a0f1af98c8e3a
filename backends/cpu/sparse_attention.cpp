// select_positions and sparse_attention. Attention runs on selected entries as on a context of their own: on the cache
// itself where whole cache blocks are selected, otherwise on copies of the selected keys and values. So the order of
// its sums depends on nothing but the selection. Entries are positions, unless the cache has a stride.
#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "backends/cpu/attention.h"

namespace infer::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

int blocks_of(int n, int block) { return (n + block - 1) / block; }

// ---- select_positions ----

// The work space of a thread that scores entries: queries, and a cache block's worth of keys.
struct ScoreScratch {
  int64_t query_dim;              // of one head, padded
  size_t floats, decoded, bytes;  // of queries and decoded keys, then of all
  ScoreScratch(int64_t heads, const CacheDesc& c)
      : query_dim((c.key_dim + 15) / 16 * 16),
        floats(static_cast<size_t>(heads * query_dim)),
        decoded(decoded_floats(c.key_type, c.key_dim)),
        bytes(sizeof(float) * (floats + decoded) + kBlockTokens * row_bytes(c.key_type, c.key_dim)) {}
};

std::unique_ptr<Prepared> prepare_select_positions(const OpDesc& op, Device& device) {
  auto prepared = std::make_unique<Prepared>();
  prepared->scratch_bytes = ScoreScratch(op.inputs[0]->shape[1], *op.cache).bytes *
                            static_cast<size_t>(static_cast<CpuDevice&>(device).n_threads());
  return prepared;
}

// The scores of one token's entries, [selections][stride]; the stride is a multiple of kBlockTokens.
struct TokenScores {
  int token, n;  // row of the step, entries that it sees
  int64_t stride;
  float* scores;
};

// Scores entries [begin, end), which begin with a multiple of kBlockTokens.
void score_entries(const HostLaunch& launch, const KernelTable& kernels, const BlockLayout& layout,
                   const TokenScores& to, int begin, int end, std::byte* scratch) {
  const CacheDesc& c = *launch.cache.desc;
  const TensorRef &q = launch.inputs[0], &weights = launch.inputs[1];
  const ScoreScratch sizes(q.desc->shape[1], c);
  auto* queries = reinterpret_cast<float*>(scratch);
  auto* copies = reinterpret_cast<uint8_t*>(queries + sizes.floats + sizes.decoded);
  IndexScoresArgs a;
  a.type = c.key_type;
  a.key_dim = c.key_dim;
  a.heads = static_cast<int>(q.desc->shape[1]);
  for (int h = 0; h < a.heads; ++h) {
    const float* query = q.data<float>() + to.token * q.desc->row_stride + int64_t{h} * c.key_dim;
    float* padded = queries + h * sizes.query_dim;
    std::fill(std::copy_n(query, c.key_dim, padded), padded + sizes.query_dim, 0.0f);
  }
  a.queries = queries;
  a.scratch = queries + sizes.floats;
  a.weights = weights ? weights.data<float>() + to.token * weights.desc->row_stride : nullptr;
  a.sum_heads = launch.param<SelectParams>().sum_heads;
  a.scores_stride = to.stride;
  const auto table = launch.step->block_table(c.group, launch.step->sequences()[to.token]);
  for (int first = begin; first < end; first += kBlockTokens) {
    a.block = c.stride == 1 ? block_at(launch.cache, layout, table, first) : copies;
    for (int e = first; c.stride > 1 && e < std::min(first + kBlockTokens, end); ++e) {
      const uint8_t* key = block_at(launch.cache, layout, table, c.position_of(e)) + c.slot_of(e) * layout.value_row;
      std::memcpy(copies + (e - first) * layout.value_row, key, static_cast<size_t>(layout.value_row));
    }
    a.scores = to.scores + first;
    kernels.index_scores(a);
  }
}

// Writes the numbers of the blocks selected among n entries. `unfinished`: whether an incomplete entry follows them.
// `order` and `best` are work space.
void select(const float* scores, int n, bool unfinished, const SelectParams& params, std::vector<int32_t>& order,
            std::vector<float>& best, int32_t* to) {
  const int blocks = blocks_of(n, params.block), count = std::min(blocks, params.count);
  order.resize(static_cast<size_t>(blocks));
  std::iota(order.begin(), order.end(), 0);
  if (count < blocks) {
    best.assign(static_cast<size_t>(blocks), -kInfinity);
    for (int p = 0; p < n; ++p) best[p / params.block] = std::max(best[p / params.block], scores[p]);
    for (int b = std::max(0, blocks - params.n_last); b < blocks; ++b) best[b] = kInfinity;
    std::nth_element(order.begin(), order.begin() + count, order.end(),
                     [&](int32_t a, int32_t b) { return best[a] != best[b] ? best[a] > best[b] : a < b; });
    std::sort(order.begin(), order.begin() + count);
  }
  int32_t* end = std::copy_n(order.begin(), count, to);
  if (params.unfinished && unfinished) *end++ = blocks;
  std::fill(end, to + params.count + (params.unfinished ? 1 : 0), -1);
}

// The most entries that are scored at a time, of one token or several.
constexpr int64_t kMostScores = 1 << 20;
constexpr int kEntryPiece = 32 * kBlockTokens;  // entries; fewer are not worth a thread

void select_positions(const Prepared&, const HostLaunch& launch, Stream& stream) {
  const SelectParams& params = launch.param<SelectParams>();
  const TensorRef &q = launch.inputs[0], &out = launch.outputs[0];
  const StepView& step = *launch.step;
  const BlockLayout layout(*launch.cache.desc);
  const int64_t selections = out.desc->shape[1];
  const size_t per_thread = ScoreScratch(q.desc->shape[1], *launch.cache.desc).bytes;
  ThreadPool& pool = cpu(stream).pool();
  std::vector<float> scores;
  for (int first = 0, end = 0; first < step.n_tokens(); first = end) {
    std::vector<TokenScores> tokens;
    std::vector<std::pair<int, int>> pieces;  // index of the token, first entry
    int64_t size = 0;
    for (; end < step.n_tokens() && (size == 0 || size < kMostScores); ++end) {
      TokenScores t = {end, launch.cache.desc->visible_entries(step.positions()[end]), 0, nullptr};
      // Where all are selected, their scores do not matter.
      if (blocks_of(t.n, params.block) > params.count) t.stride = blocks_of(t.n, kBlockTokens) * kBlockTokens;
      for (int e = 0; e < t.stride; e += kEntryPiece) pieces.emplace_back(end - first, e);
      size += t.stride * selections;
      tokens.push_back(t);
    }
    scores.resize(static_cast<size_t>(size));
    float* at = scores.data();
    for (TokenScores& t : tokens) {
      t.scores = at;
      at += t.stride * selections;
    }
    pool.run(static_cast<int64_t>(pieces.size()), [&](int64_t i, int thread) {
      const auto [token, entry] = pieces[static_cast<size_t>(i)];
      const TokenScores& t = tokens[static_cast<size_t>(token)];
      score_entries(launch, cpu(stream).kernels(), layout, t, entry, std::min(entry + kEntryPiece, t.n),
                    launch.scratch.data<std::byte>() + per_thread * static_cast<size_t>(thread));
    });
    parallel_ranges(cpu(stream), static_cast<int64_t>(tokens.size()), 1, [&](int64_t begin, int64_t stop, int) {
      std::vector<int32_t> order;
      std::vector<float> best;
      for (int64_t i = begin * selections; i < stop * selections; ++i) {
        const TokenScores& t = tokens[static_cast<size_t>(i / selections)];
        const bool unfinished = (step.positions()[t.token] + 1) % launch.cache.desc->stride != 0;
        select(t.scores + i % selections * t.stride, t.n, unfinished, params, order, best,
               out.data<int32_t>() + (t.token * selections + i % selections) * out.desc->shape[2]);
      }
    });
  }
}

// ---- sparse_attention ----

// Copies one key to a slot of another block, both as in BlockLayout.
void copy_key(const CacheDesc& c, const uint8_t* from, int from_slot, uint8_t* to, int to_slot) {
  const TypeTraits& t = traits(c.key_type);
  const auto copy = [&](size_t size) {
    std::memcpy(to + to_slot * size, from + from_slot * size, size);
    from += kBlockTokens * size;
    to += kBlockTokens * size;
  };
  const int groups = c.key_dim / static_cast<int>(t.block_size);
  for (int i = 0; i < groups; ++i) {
    if (is_float(c.key_type)) {
      copy(t.type_size);
      continue;
    }
    const size_t n_f16 = static_cast<size_t>(n_f16_of(c.key_type));
    for (size_t h = 0; h < n_f16; ++h) copy(sizeof(uint16_t));
    for (size_t b = n_f16 * sizeof(uint16_t); b < t.type_size; ++b) copy(1);
  }
}

// The entries that one token sees in one KV head, as a context of their own.
struct Selection {
  std::vector<int32_t> table;
  int n = 0;            // entries
  bool copied = false;  // the table is of copies, from block 0 on
};

// Bytes of one KV head's copies of n entries.
int64_t copied_bytes(const CacheDesc& c, int64_t n) {
  const size_t entry = row_bytes(c.key_type, c.key_dim) + (c.latent ? 0 : row_bytes(c.value_type, c.value_dim));
  return blocks_of(static_cast<int>(n), kBlockTokens) * kBlockTokens * static_cast<int64_t>(entry);
}

// Copies keys and values of a KV head to a context of their own, one after another.
class Copier {
 public:
  Copier(const HostLaunch& launch, const BlockLayout& layout, int token, int kv_head, uint8_t* to)
      : launch_(launch),
        layout_(layout),
        c_(*launch.cache.desc),
        table_(launch.step->block_table(c_.group, launch.step->sequences()[token])),
        kv_head_(kv_head),
        to_(to) {}

  void add(int entry, Selection& selection) const {
    const uint8_t* from = block_at(launch_.cache, layout_, table_, c_.position_of(entry));
    const int slot = c_.slot_of(entry), to_slot = selection.n % kBlockTokens;
    uint8_t* copy = to_ + copied_bytes(c_, selection.n / kBlockTokens * kBlockTokens);
    const uint8_t* keys = from + kv_head_ * layout_.key_head;
    const size_t row = static_cast<size_t>(layout_.value_row);
    if (to_slot == 0) selection.table.push_back(selection.n / kBlockTokens);
    ++selection.n;
    if (c_.latent) {
      std::memcpy(copy + to_slot * layout_.value_row, keys + slot * layout_.value_row, row);
      return;
    }
    copy_key(c_, keys, slot, copy, to_slot);
    const uint8_t* values = from + layout_.values_at + kv_head_ * layout_.value_head;
    std::memcpy(copy + layout_.key_head + to_slot * layout_.value_row, values + slot * layout_.value_row, row);
  }

 private:
  const HostLaunch& launch_;
  const BlockLayout& layout_;
  const CacheDesc& c_;
  const std::span<const int32_t> table_;
  const int kv_head_;
  uint8_t* const to_;
};

// `copies` has room for all that may be selected (copied_bytes()). Without selected blocks, `own_copies` is used
// instead and grows as needed.
Selection gather(const HostLaunch& launch, const BlockLayout& layout, int token, int kv_head, uint8_t* copies,
                 std::vector<uint8_t>& own_copies) {
  const TensorRef& blocks = launch.inputs[1];
  const CacheDesc& c = *launch.cache.desc;
  const int block = launch.param<SparseAttentionParams>().block;
  const int end = c.visible_entries(launch.step->positions()[token]);
  Selection selection;
  if (!blocks) {
    own_copies.resize(std::max(own_copies.size(), static_cast<size_t>(copied_bytes(c, end))));
    const Copier copier(launch, layout, token, kv_head, own_copies.data());
    for (int e = 0; e < end; ++e) copier.add(e, selection);
    selection.copied = true;
    return selection;
  }
  const int64_t selections = blocks.desc->shape[1], count = blocks.desc->shape[2];
  const int32_t* first = blocks.data<int32_t>() + (token * selections + (selections > 1 ? kv_head : 0)) * count;
  const std::span<const int32_t> selected(first, std::find(first, first + count, -1));
  const auto table = launch.step->block_table(c.group, launch.step->sequences()[token]);
  if (c.stride == 1 && static_cast<int>(selected.size()) == blocks_of(end, block)) {
    selection.table.assign(table.begin(), table.begin() + blocks_of(end, kBlockTokens));
    selection.n = end;
    return selection;
  }
  const Copier copier(launch, layout, token, kv_head, copies);
  const bool whole = c.stride == 1 && block % kBlockTokens == 0;  // blocks of the cache
  selection.copied = !whole;
  for (const int32_t b : selected) {
    const int stop = std::min((b + 1) * block, end);
    for (int e = b * block; !whole && e < stop; ++e) copier.add(e, selection);
    for (int e = b * block; whole && e < stop; e += kBlockTokens) selection.table.push_back(table[e / kBlockTokens]);
    if (whole) selection.n += stop - b * block;
  }
  return selection;
}

int64_t most_copied(const CacheDesc& c, const TensorDesc* blocks, const SparseAttentionParams& params) {
  return blocks ? copied_bytes(c, blocks->shape[2] * params.block) : 0;
}

// Scratch memory: that of attend_to_context(), then the copies of each thread.
std::unique_ptr<Prepared> prepare_sparse_attention(const OpDesc& op, Device& device) {
  const auto& target = static_cast<CpuDevice&>(device);
  auto prepared = std::make_unique<Prepared>();
  const int64_t copies = most_copied(*op.cache, op.inputs[1], op.param<SparseAttentionParams>());
  prepared->scratch_bytes = whole_cache_lines(context_scratch_bytes(op, target)) +
                            static_cast<size_t>(copies) * static_cast<size_t>(target.n_threads());
  return prepared;
}

// Attends from one token's query heads [first_head, first_head + heads), which share a KV head. `scratch` is that of
// the thread, and `slopes` zeros.
void attend_to_selection(const HostLaunch& launch, const KernelTable& kernels, AttentionArgs a, int token,
                         int64_t first_head, const Selection& selection, float* log_sums) {
  const CacheDesc& c = *launch.cache.desc;
  const TensorRef &q = launch.inputs[0], &sinks = launch.inputs[2], &out = launch.outputs[0];
  const AttentionParams params = {.scale = launch.param<SparseAttentionParams>().scale};
  a.out = out.data<float>() + token * out.desc->row_stride + first_head * c.value_dim;
  a.log_sums = log_sums;
  if (selection.n == 0) {
    std::fill_n(a.out, a.heads * c.value_dim, 0.0f);
    std::fill_n(log_sums, a.heads, kNothingSeen);
    return;
  }
  a.params = &params;
  a.table = selection.table.data();
  a.position = selection.n - 1;
  a.sequence_length = selection.n;
  a.n_queries = 1;
  a.query = q.data<float>() + token * q.desc->row_stride + first_head * c.key_dim;
  a.query_stride = q.desc->row_stride;
  a.sinks = sinks ? sinks.data<float>() + first_head : nullptr;
  a.log_sums_stride = a.heads;
  a.out_stride = out.desc->row_stride;
  kernels.attention(a);
}

// A piece is query heads of one KV head and one token.
void sparse_attention(const Prepared&, const HostLaunch& launch, Stream& s) {
  CpuStream& stream = cpu(s);
  const SparseAttentionParams& params = launch.param<SparseAttentionParams>();
  const CacheDesc& c = *launch.cache.desc;
  const TensorRef &blocks = launch.inputs[1], &sinks = launch.inputs[2];
  float *scratch = launch.scratch.data<float>(), *log_sums = launch.outputs[1].data<float>();
  if (!blocks && c.stride == 1) {
    const AttentionParams context = {.scale = params.scale, .window = params.window};
    return attend_to_context(launch, stream, context, sinks, log_sums, scratch);
  }
  const BlockLayout layout(c);
  const int n_head = static_cast<int>(launch.inputs[0].desc->shape[1]), n_tokens = launch.step->n_tokens();
  const int threads = stream.pool().size();
  float* slopes = scratch + scratch_floats(c) * threads;
  std::fill_n(slopes, n_head, 0.0f);
  const size_t at = whole_cache_lines(sizeof(float) * (scratch_floats(c) * threads + n_head));
  uint8_t* copies = launch.scratch.data<uint8_t>() + at;
  const int64_t per_thread = most_copied(c, blocks.desc, params);
  std::vector<std::vector<uint8_t>> own_copies(static_cast<size_t>(threads));
  const int parts = head_parts(n_head / c.n_kv_head, int64_t{n_tokens} * c.n_kv_head, threads);
  const int heads = n_head / c.n_kv_head / parts, groups = c.n_kv_head * parts;
  stream.pool().run(int64_t{n_tokens} * groups, [&](int64_t piece, int thread) {
    // Later tokens see more positions: start with the longest pieces.
    const int token = n_tokens - 1 - static_cast<int>(piece / groups);
    const int kv_head = static_cast<int>(piece % groups) / parts;
    const int64_t first_head = piece % groups * heads;
    uint8_t* to = copies + per_thread * thread;
    std::vector<uint8_t>& own = own_copies[static_cast<size_t>(thread)];
    const Selection selection = gather(launch, layout, token, kv_head, to, own);
    AttentionArgs a = cache_args(launch.cache, layout, kv_head);
    if (selection.copied) {
      a.cache = blocks ? to : own.data();
      a.key_bytes = kBlockTokens * static_cast<int64_t>(row_bytes(c.key_type, c.key_dim));
      a.block_bytes = copied_bytes(c, kBlockTokens);
      a.head_key_offset = 0;
      a.head_value_offset = c.latent ? 0 : a.key_bytes;
    }
    a.heads = heads;
    a.slopes = slopes + first_head;
    a.scratch = scratch + scratch_floats(c) * static_cast<size_t>(thread);
    attend_to_selection(launch, stream.kernels(), a, token, first_head, selection,
                        log_sums + int64_t{token} * n_head + first_head);
  });
}

}  // namespace

std::span<const OpRecord> sparse_attention_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kSelectPositions, supports_cache, prepare_select_positions, launch_on_host<select_positions>},
      {Op::kSparseAttention, supports_cache, prepare_sparse_attention, launch_on_host<sparse_attention>},
  };
  return kRecords;
}

}  // namespace infer::cpu
