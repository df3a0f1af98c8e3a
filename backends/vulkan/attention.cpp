// kv_store and paged_attention.
#include <algorithm>
#include <array>
#include <bit>

#include "backends/vulkan/vulkan_ops.h"
#include "ggml-like/error.h"

namespace infer::vulkan {
namespace {

// The types of keys and values in the order of glsl/cache.glsl, with the values and words of a storage unit.
struct CacheType {
  DataType type;
  int values, words;
};
constexpr std::array kCacheTypes = {CacheType{DataType::kF32, 1, 1}, CacheType{DataType::kF16, 2, 1},
                                    CacheType{DataType::kBF16, 2, 1}, CacheType{DataType::kQ8_0, 32, 9},
                                    CacheType{DataType::kQ4_0, 32, 5}};

// The index in kCacheTypes, or -1.
int cache_type(DataType type) {
  for (size_t i = 0; i < kCacheTypes.size(); ++i) {
    if (kCacheTypes[i].type == type) return static_cast<int>(i);
  }
  return -1;
}

int64_t row_words(DataType type, int64_t dim) {
  const CacheType& t = kCacheTypes[cache_type(type)];
  return (dim + t.values - 1) / t.values * t.words;
}

int64_t units(DataType type, int64_t dim) {
  const CacheType& t = kCacheTypes[cache_type(type)];
  return (dim + t.values - 1) / t.values;
}

bool can_store(DataType type, int dim) {
  return cache_type(type) >= 0 && (!traits(type).quantized || dim % traits(type).block_size == 0);
}

// The shared memory of paged_attention.comp for `rows` rows, in bytes.
uint32_t shared_bytes(int rows, int key_dim) { return 4u * static_cast<uint32_t>(rows) * (u32(key_dim) + 256 + 16); }

// The largest key_dim of the pipeline. In software rendering most models share one pipeline, see fixed_type().
int most_key_dim(const OpDesc& op, const Context& context) {
  return context.physical.is_software() ? std::max(256, op.cache->key_dim) : op.cache->key_dim;
}

// The rows of a workgroup: heads that share keys, times tokens. The pipeline is compiled for `rows` rows.
struct Tile {
  int heads, tokens, rows;
};

Tile tile_of(const OpDesc& op, const Context& context) {
  const int64_t tokens = op.inputs[0]->shape[0];
  const int group = static_cast<int>(op.inputs[0]->shape[1]) / op.cache->n_kv_head;
  const uint32_t shared = context.max_shared();
  int most = context.physical.is_software() ? 4 : 8;  // software rendering uses one pipeline, for 4
  while (most > 1 && shared_bytes(most, most_key_dim(op, context)) > shared) most /= 2;
  Tile tile{std::min(group, most), 1, most};
  // The tokens of a small batch mostly belong to different sequences, which do not share keys.
  if (tokens > 32) tile.tokens = std::max(1, most / tile.heads);
  const int wanted = tile.heads * tile.tokens;
  if (!context.physical.is_software()) tile.rows = wanted == 1 ? 1 : std::min(most, wanted <= 4 ? 4 : 8);
  return tile;
}

// The number of workgroups that share the context of one token. With few tokens, the heads alone would leave most of a
// GPU idle.
constexpr int kChunks = 16;  // as in attention_merge.comp
int chunks_of(const OpDesc& op, const Context& context) {
  return context.options.deterministic || op.inputs[0]->shape[0] > 8 ? 1 : kChunks;
}

struct StorePush {
  uint32_t heads, key_dim, value_dim, k_at, k_stride, v_at, v_stride, cache_at;
  uint32_t positions_at, sequences_at, table_at, table_stride;
  uint32_t types;
};
struct AttentionPush {
  uint32_t heads, kv_heads, tile_heads, tile_tokens;
  uint32_t q_at, q_stride, sinks_at, cache_at, out_at;
  uint32_t positions_at, sequences_at, lengths_at, table_at, table_stride;
  uint32_t window, alibi_power;
  float scale, softcap, alibi_max_bias;
  uint32_t key_dim, value_dim, chunks, flags;
  uint32_t first_token, last_token;
};
struct MergePush {
  uint32_t heads, parts_at, sinks_at, out_at, value_dim, has_sinks;
};

// The specialization constant for a type. Software rendering, where compiling takes longest, uses one pipeline for all.
uint32_t fixed_type(const Context& context, DataType type) {
  return context.physical.is_software() ? 255 : u32(cache_type(type));
}

Operand cache_operand(VulkanStream& stream, const CacheRef& cache, bool written) {
  return stream.range(*cache.buffer, cache.offset,
                      cache_block_bytes(*cache.desc) * static_cast<uint64_t>(cache.n_blocks), written);
}

uint32_t table_at(const Launch& launch) {
  return u32(static_cast<int64_t>(launch.step_layout->tables_at(launch.cache.desc->group)));
}

bool supports_attention(const OpDesc& op, const Device& device) {
  const CacheDesc& c = *op.cache;
  return !c.latent && can_store(c.key_type, c.key_dim) && can_store(c.value_type, c.value_dim) &&
         shared_bytes(1, most_key_dim(op, context_of(device))) <= context_of(device).max_shared();
}

void kv_store(const Prepared&, const Launch& launch, Stream& s) {
  VulkanStream& stream = vulkan(s);
  const CacheDesc& c = *launch.cache.desc;
  const TensorRef &k = launch.inputs[0], &v = launch.inputs[1];
  const Operand keys = stream.read(k), values = stream.read(v), cache = cache_operand(stream, launch.cache, true);
  const StepLayout& step = *launch.step_layout;
  const StorePush push = {u32(c.n_kv_head),
                          u32(c.key_dim),
                          u32(c.value_dim),
                          keys.at,
                          u32(k.desc->row_stride),
                          values.at,
                          u32(v.desc->row_stride),
                          cache.at,
                          u32(static_cast<int64_t>(step.positions_at)),
                          u32(static_cast<int64_t>(step.sequences_at)),
                          table_at(launch),
                          u32(step.capacity.blocks_per_sequence),
                          u32(cache_type(c.key_type) | cache_type(c.value_type) << 8)};
  const int64_t lanes = c.n_kv_head * (units(c.key_type, c.key_dim) + units(c.value_type, c.value_dim));
  stream.dispatch("kv_store", {fixed_type(stream.context(), c.key_type), fixed_type(stream.context(), c.value_type)},
                  {stream.step(launch), keys, values, cache}, push, {groups(lanes, 64), rows_of(k)});
}

std::unique_ptr<Prepared> prepare_paged_attention(const OpDesc& op, Device& device) {
  auto prepared = std::make_unique<Prepared>();
  const int chunks = chunks_of(op, context_of(device));
  if (chunks > 1) {
    const size_t rows = static_cast<size_t>(op.inputs[0]->shape[0] * op.inputs[0]->shape[1]);
    prepared->scratch_bytes = sizeof(float) * rows * chunks * (static_cast<size_t>(op.cache->value_dim) + 2);
  }
  return prepared;
}

// What paged_attention.comp and attention_merge.comp read and write. `parts` are the results of each workgroup, which
// are the outputs unless the context is split among several.
struct AttentionOperands {
  Operand inputs, queries, sinks, cache, parts, out;
};

AttentionOperands attention_operands(VulkanStream& stream, const Prepared& prepared, const Launch& launch,
                                     uint32_t chunks) {
  AttentionOperands o;
  o.inputs = stream.step(launch);
  o.queries = stream.read(launch.inputs[0]);
  o.sinks = launch.inputs[1] ? stream.read(launch.inputs[1]) : o.inputs;  // a binding needs some buffer
  o.cache = cache_operand(stream, launch.cache, false);
  o.out = stream.write(launch.outputs[0]);
  o.parts =
      chunks == 1 ? o.out : stream.range(*launch.scratch.buffer, launch.scratch.offset, prepared.scratch_bytes, true);
  return o;
}

AttentionPush attention_push(const Launch& launch, const AttentionOperands& o, const Tile& tile, uint32_t chunks) {
  const AttentionParams& params = launch.param<AttentionParams>();
  const CacheDesc& c = *launch.cache.desc;
  const TensorDesc& q = *launch.inputs[0].desc;
  const StepLayout& step = *launch.step_layout;
  const bool has_sinks = static_cast<bool>(launch.inputs[1]);
  AttentionPush push = {};
  push.heads = u32(q.shape[1]);
  push.kv_heads = u32(c.n_kv_head);
  push.tile_heads = u32(tile.heads);
  push.tile_tokens = u32(tile.tokens);
  push.q_at = o.queries.at;
  push.q_stride = u32(q.row_stride);
  push.sinks_at = o.sinks.at;
  push.cache_at = o.cache.at;
  push.out_at = o.parts.at;
  push.positions_at = u32(static_cast<int64_t>(step.positions_at));
  push.sequences_at = u32(static_cast<int64_t>(step.sequences_at));
  push.lengths_at = u32(static_cast<int64_t>(step.lengths_at));
  push.table_at = table_at(launch);
  push.table_stride = u32(step.capacity.blocks_per_sequence);
  push.window = u32(params.window);
  push.alibi_power = std::bit_floor(push.heads);
  push.scale = params.scale;
  push.softcap = params.softcap;
  push.alibi_max_bias = params.alibi_max_bias;
  push.key_dim = u32(c.key_dim);
  push.value_dim = u32(c.value_dim);
  push.chunks = chunks;
  push.flags = (params.causal ? 1u : 0u) | (has_sinks ? 2u : 0u) | (params.chunked ? 4u : 0u) |
               u32(cache_type(c.key_type)) << 8 | u32(cache_type(c.value_type)) << 16;
  return push;
}

void paged_attention(const Prepared& prepared, const Launch& launch, Stream& s) {
  VulkanStream& stream = vulkan(s);
  const Context& context = stream.context();
  const CacheDesc& c = *launch.cache.desc;
  const Tile tile = tile_of(launch.op, context);
  const uint32_t chunks = u32(chunks_of(launch.op, context)), n_rows = rows_of(launch.inputs[0]);
  const AttentionOperands o = attention_operands(stream, prepared, launch, chunks);
  AttentionPush push = attention_push(launch, o, tile, chunks);
  const uint32_t head_tiles = groups(push.heads / push.kv_heads, tile.heads);
  // A lane takes every 128th dimension of the value.
  const uint32_t dims = groups(context.physical.is_software() ? std::max(256, c.value_dim) : c.value_dim, 128);
  // The work of a token whose context is full. A batch with too much work for one submission is cut into ranges of
  // tokens.
  const double work = 4.0 * push.table_stride * kBlockTokens * push.heads * c.key_dim;
  const double fit = std::min(context.max_work() / work, 1e9);
  const uint32_t range = std::max(u32(static_cast<int64_t>(fit)) / tile.tokens, 1u) * tile.tokens;
  for (uint32_t first = 0; first < n_rows; first += range) {
    const uint32_t count = std::min(range, n_rows - first);
    push.first_token = first;
    push.last_token = first + count;
    stream.dispatch("paged_attention",
                    {u32(tile.rows), fixed_type(context, c.key_type), fixed_type(context, c.value_type),
                     u32(most_key_dim(launch.op, context)), dims},
                    {o.inputs, o.queries, o.sinks, o.cache, o.parts}, push,
                    {chunks, push.kv_heads * head_tiles, groups(count, tile.tokens)}, work * count);
  }
  if (chunks == 1) return;
  Operand parts = o.parts;
  parts.written = false;
  const MergePush merge = {push.heads, parts.at, o.sinks.at, o.out.at, push.value_dim, launch.inputs[1] ? 1u : 0u};
  stream.dispatch("attention_merge", {}, {o.inputs, parts, o.sinks, o.out}, merge, {push.heads, n_rows});
}

}  // namespace

size_t cache_block_bytes(const CacheDesc& c) {
  if (cache_type(c.key_type) < 0 || cache_type(c.value_type) < 0) return 0;
  return sizeof(uint32_t) * kBlockTokens * static_cast<size_t>(c.n_kv_head) *
         static_cast<size_t>(row_words(c.key_type, c.key_dim) + row_words(c.value_type, c.value_dim));
}

std::span<const OpRecord> attention_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kKvStore, supports_attention, nothing_to_prepare, kv_store},
      {Op::kPagedAttention, supports_attention, prepare_paged_attention, paged_attention},
  };
  return kRecords;
}

}  // namespace infer::vulkan
