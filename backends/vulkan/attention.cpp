// kv_store and paged_attention.
#include <algorithm>
#include <array>

#include "backends/vulkan/vulkan_ops.h"
#include "ggml-like/error.h"

namespace infer::vulkan {
namespace {

// Types of keys and values in the order of glsl/cache.glsl: values and words that are stored together.
struct CacheType {
  DataType type;
  int values, words;
};
constexpr std::array kCacheTypes = {CacheType{DataType::kF32, 1, 1}, CacheType{DataType::kF16, 2, 1},
                                    CacheType{DataType::kBF16, 2, 1}, CacheType{DataType::kQ8_0, 32, 9},
                                    CacheType{DataType::kQ4_0, 32, 5}};

// Its place in the list, or -1.
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

// Shared memory of paged_attention.comp for so many rows, in bytes.
uint32_t shared_bytes(int rows, int key_dim) { return 4u * static_cast<uint32_t>(rows) * (u32(key_dim) + 256 + 16); }

// Room for a key in the shader; on a processor the same for most models, see fixed_type().
int most_key_dim(const OpDesc& op, const Context& context) {
  return context.physical.is_software() ? std::max(256, op.cache->key_dim) : op.cache->key_dim;
}

// How queries are put together: heads that share keys, then tokens, in the rows of a shader made for so many.
struct Tile {
  int heads, tokens, rows;
};

Tile tile_of(const OpDesc& op, const Context& context) {
  const int64_t tokens = op.inputs[0]->shape[0];
  const int group = static_cast<int>(op.inputs[0]->shape[1]) / op.cache->n_kv_head;
  const uint32_t shared = context.max_shared();
  int most = context.physical.is_software() ? 4 : 8;  // a processor compiles one pipeline, for 4
  while (most > 1 && shared_bytes(most, most_key_dim(op, context)) > shared) most /= 2;
  Tile tile{std::min(group, most), 1, most};
  // Small batches are mostly tokens of different sequences, which do not share keys.
  if (tokens > 32) tile.tokens = std::max(1, most / tile.heads);
  const int wanted = tile.heads * tile.tokens;
  if (!context.physical.is_software()) tile.rows = wanted == 1 ? 1 : std::min(most, wanted <= 4 ? 4 : 8);
  return tile;
}

// Workgroups that share the context of one token: for few tokens, whose heads alone would leave most of a GPU idle.
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

// Types as specialization constants; on a processor, where compiling takes longest, one pipeline does for all.
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
  return can_store(c.key_type, c.key_dim) && can_store(c.value_type, c.value_dim) &&
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

void paged_attention(const Prepared& prepared, const Launch& launch, Stream& s) {
  VulkanStream& stream = vulkan(s);
  const AttentionParams& params = launch.param<AttentionParams>();
  const CacheDesc& c = *launch.cache.desc;
  const TensorRef &q = launch.inputs[0], &sinks = launch.inputs[1], &out = launch.outputs[0];
  const StepLayout& step = *launch.step_layout;
  const Tile tile = tile_of(launch.op, stream.context());
  const uint32_t chunks = u32(chunks_of(launch.op, stream.context()));
  const Operand inputs = stream.step(launch), queries = stream.read(q),
                cache = cache_operand(stream, launch.cache, false);
  const Operand sink = sinks ? stream.read(sinks) : inputs, to = stream.write(out);
  const Operand parts =
      chunks > 1 ? stream.range(*launch.scratch.buffer, launch.scratch.offset, prepared.scratch_bytes, true) : to;
  const uint32_t heads = u32(q.desc->shape[1]), kv_heads = u32(c.n_kv_head);
  uint32_t power = 1;
  while (power * 2 <= heads) power *= 2;
  AttentionPush push = {heads,
                        kv_heads,
                        u32(tile.heads),
                        u32(tile.tokens),
                        queries.at,
                        u32(q.desc->row_stride),
                        sink.at,
                        cache.at,
                        parts.at,
                        u32(static_cast<int64_t>(step.positions_at)),
                        u32(static_cast<int64_t>(step.sequences_at)),
                        u32(static_cast<int64_t>(step.lengths_at)),
                        table_at(launch),
                        u32(step.capacity.blocks_per_sequence),
                        u32(params.window),
                        power,
                        params.scale,
                        params.softcap,
                        params.alibi_max_bias,
                        u32(c.key_dim),
                        u32(c.value_dim),
                        chunks,
                        (params.causal ? 1u : 0u) | (sinks ? 2u : 0u) | u32(cache_type(c.key_type)) << 8 |
                            u32(cache_type(c.value_type)) << 16,
                        0,
                        0};
  const uint32_t head_tiles = groups(heads / kv_heads, tile.heads);
  // A lane takes every 128th dimension of the value.
  const uint32_t dims = groups(stream.context().physical.is_software() ? std::max(256, c.value_dim) : c.value_dim, 128);
  // As if the context were full. What is too much for a submission is cut into ranges of tokens.
  const double work = 4.0 * step.capacity.blocks_per_sequence * kBlockTokens * heads * c.key_dim;  // of a token
  const double fit = std::min(stream.context().max_work() / work, 1e9);
  const uint32_t rows = rows_of(q), whole = std::max(u32(static_cast<int64_t>(fit)) / tile.tokens, 1u) * tile.tokens;
  for (uint32_t first = 0; first < rows; first += whole) {
    const uint32_t count = std::min(whole, rows - first);
    push.first_token = first;
    push.last_token = first + count;
    stream.dispatch("paged_attention",
                    {u32(tile.rows), fixed_type(stream.context(), c.key_type),
                     fixed_type(stream.context(), c.value_type), u32(most_key_dim(launch.op, stream.context())), dims},
                    {inputs, queries, sink, cache, parts}, push,
                    {chunks, kv_heads * head_tiles, groups(count, tile.tokens)}, work * count);
  }
  if (chunks == 1) return;
  Operand left = parts;
  left.written = false;
  const MergePush merge = {heads, left.at, sink.at, to.at, u32(c.value_dim), sinks ? 1u : 0u};
  stream.dispatch("attention_merge", {}, {inputs, left, sink, to}, merge, {heads, rows_of(q)});
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
