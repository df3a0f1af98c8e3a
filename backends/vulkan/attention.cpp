// kv_store and paged_attention.
#include "backends/vulkan/attention.h"

#include <algorithm>
#include <array>
#include <bit>

#include "ggml-like/error.h"

namespace infer::vulkan {
namespace {

// The types of keys and values in the order of glsl/cache.glsl, with the values and words of a storage unit.
struct CacheType {
  DataType type;
  int values, words;
};
constexpr std::array kCacheTypes = {
    CacheType{DataType::kF32, 1, 1},   CacheType{DataType::kF16, 2, 1},   CacheType{DataType::kBF16, 2, 1},
    CacheType{DataType::kQ8_0, 32, 9}, CacheType{DataType::kQ4_0, 32, 5}, CacheType{DataType::kQ4_1, 32, 6},
    CacheType{DataType::kQ5_0, 32, 6}, CacheType{DataType::kQ5_1, 32, 7}, CacheType{DataType::kIQ4_NL, 32, 5}};

int64_t row_words(DataType type, int64_t dim) {
  const CacheType& t = kCacheTypes[cache_type(type)];
  return (dim + t.values - 1) / t.values * t.words;
}

int64_t units(DataType type, int64_t dim) {
  const CacheType& t = kCacheTypes[cache_type(type)];
  return (dim + t.values - 1) / t.values;
}

// In a latent cache, values are parts of keys.
DataType value_type_of(const CacheDesc& cache) { return cache.latent ? cache.key_type : cache.value_type; }

bool can_store(DataType type, int dim) {
  return cache_type(type) >= 0 && (!traits(type).quantized || dim % traits(type).block_size == 0);
}

// The shared memory of paged_attention.comp for `rows` rows, in bytes.
uint32_t shared_bytes(int rows, int key_dim) { return 4u * (static_cast<uint32_t>(rows) * (u32(key_dim) + 277) + 256); }
// The same for latent_attention.comp, where it does not depend on key_dim.
uint32_t latent_shared_bytes(int rows) { return 4u * (static_cast<uint32_t>(rows) * 310 + 256 + 1152); }

// The dimensions of the values per lane, with 128 lanes. Each takes a register per row; latent caches have up to 16
// rows.
constexpr int kMostDims = 8;
int dims_of(const CacheDesc& cache, const Context& context) {
  return static_cast<int>(
      groups(context.physical.is_software() ? std::max(256, cache.value_dim) : cache.value_dim, 128));
}

// The largest key_dim of the pipeline. On a software renderer most models share one pipeline, see fixed_type().
int most_key_dim(const CacheDesc& cache, const Context& context) {
  return context.physical.is_software() ? std::max(256, cache.key_dim) : cache.key_dim;
}

uint32_t shared_bytes(const CacheDesc& cache, const Context& context, int rows) {
  return cache.latent ? latent_shared_bytes(rows) : shared_bytes(rows, most_key_dim(cache, context));
}

// The rows of a workgroup: heads that share keys, times tokens. The pipeline is compiled for `rows` rows.
struct Tile {
  int heads, tokens, rows;
};

// Heads that share the long keys of a latent cache should read them together: up to 16.
Tile tile_of(const OpDesc& op, const Context& context) {
  const int64_t tokens = op.inputs[0]->shape[0];
  const int group = static_cast<int>(op.inputs[0]->shape[1]) / op.cache->n_kv_head;
  const bool software = context.physical.is_software();  // one pipeline for all, with 4 rows
  int most = software ? 4 : op.cache->latent && group > 8 ? 16 : 8;
  while (most > 1 && shared_bytes(*op.cache, context, most) > context.max_shared()) most /= 2;
  Tile tile{std::min(group, most), 1, most};
  // The tokens of a small batch mostly belong to different sequences, which do not share keys; nor do tokens that
  // select their own.
  if (tokens > 32 && op.op == Op::kPagedAttention) tile.tokens = std::max(1, most / tile.heads);
  const int wanted = tile.heads * tile.tokens;
  if (!software) tile.rows = wanted == 1 ? 1 : std::min(most, wanted <= 4 ? 4 : wanted <= 8 ? 8 : 16);
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
  uint32_t types, stride;
};
struct AttentionPush {
  uint32_t heads, kv_heads, tile_heads, tile_tokens;
  uint32_t q_at, q_stride, sinks_at, cache_at, out_at;
  uint32_t positions_at, sequences_at, lengths_at, table_at, table_stride;
  uint32_t window, alibi_power;
  float scale, softcap, alibi_max_bias;
  uint32_t key_dim, value_dim, chunks, flags;
  uint32_t first_token, last_token;
  uint32_t blocks_at, selections, count, block, stride, log_sums_at;
};
struct MergePush {
  uint32_t heads, parts_at, sinks_at, out_at, value_dim, log_sums_at, flags;
};

void kv_store(const Prepared&, const Launch& launch, Stream& s) {
  VulkanStream& stream = vulkan(s);
  const CacheDesc& c = *launch.cache.desc;
  const TensorRef &k = launch.inputs[0], &v = c.latent ? k : launch.inputs[1];
  const DataType value_type = value_type_of(c);
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
                          u32(cache_type(c.key_type) | cache_type(value_type) << 8),
                          c.latent ? u32(c.stride) : 0};
  const int64_t value_units = c.latent ? 0 : units(value_type, c.value_dim);
  const int64_t lanes = c.n_kv_head * (units(c.key_type, c.key_dim) + value_units);
  stream.dispatch("kv_store", {fixed_type(stream.context(), c.key_type), fixed_type(stream.context(), value_type)},
                  {stream.step(launch), keys, values, cache}, push, {groups(lanes, 64), rows_of(k)});
}

// The operands of the attention shaders and attention_merge.comp. `parts` receives the results of each workgroup: the
// outputs, unless the context is split among several workgroups. Bindings without a tensor need some other buffer.
struct AttentionOperands {
  Operand inputs, queries, sinks, cache, parts, out, blocks, log_sums;
};

AttentionOperands attention_operands(VulkanStream& stream, const Prepared& prepared, const Launch& launch,
                                     const AttentionInputs& in, uint32_t chunks) {
  AttentionOperands o;
  o.inputs = stream.step(launch);
  o.queries = stream.read(launch.inputs[0]);
  o.sinks = in.sinks ? stream.read(in.sinks) : o.inputs;
  o.cache = cache_operand(stream, launch.cache, false);
  o.out = stream.write(launch.outputs[0]);
  o.blocks = in.blocks ? stream.read(in.blocks) : o.inputs;
  o.log_sums = in.log_sums ? stream.write(in.log_sums) : o.out;
  o.parts =
      chunks == 1 ? o.out : stream.range(*launch.scratch.buffer, launch.scratch.offset, prepared.scratch_bytes, true);
  return o;
}

AttentionPush attention_push(const Launch& launch, const AttentionInputs& in, const AttentionOperands& o,
                             const Tile& tile, uint32_t chunks) {
  const AttentionParams& params = in.params;
  const CacheDesc& c = *launch.cache.desc;
  const TensorDesc& q = *launch.inputs[0].desc;
  const StepLayout& step = *launch.step_layout;
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
  push.flags = (params.causal ? 1u : 0u) | (in.sinks ? 2u : 0u) | (params.chunked ? 4u : 0u) |
               u32(cache_type(c.key_type)) << 8 | u32(cache_type(value_type_of(c))) << 16;
  push.stride = u32(c.stride);
  push.block = u32(in.block);
  push.log_sums_at = o.log_sums.at;
  if (in.blocks) {
    push.blocks_at = o.blocks.at;
    push.selections = u32(in.blocks.desc->shape[1]);
    push.count = u32(in.blocks.desc->shape[2]);
  }
  return push;
}

// Multiplications and additions for a token whose context is full.
double work_per_token(const AttentionPush& push) {
  double entries = static_cast<double>(push.table_stride) * kBlockTokens / push.stride;
  if (push.count > 0) entries = std::min(entries, static_cast<double>(push.count) * push.block);
  return 4.0 * entries * push.heads * push.key_dim;
}

// Dispatches the shader for ranges of tokens: a batch with too much work for one submission is divided.
void dispatch_attention(VulkanStream& stream, const Launch& launch, const AttentionOperands& o, AttentionPush push,
                        const Tile& tile, bool sparse) {
  const Context& context = stream.context();
  const CacheDesc& c = *launch.cache.desc;
  const std::string shader = c.latent ? (sparse ? "latent_sparse_attention" : "latent_attention")
                                      : (sparse ? "sparse_attention" : "paged_attention");
  std::vector<uint32_t> constants = {u32(tile.rows), fixed_type(context, c.key_type),
                                     fixed_type(context, value_type_of(c)), u32(dims_of(c, context))};
  if (!c.latent) constants.push_back(u32(most_key_dim(c, context)));
  std::vector<Operand> operands = {o.inputs, o.queries, o.sinks, o.cache, o.parts};
  if (sparse) operands.insert(operands.end(), {o.blocks, o.log_sums});
  const uint32_t n_rows = rows_of(launch.inputs[0]), head_tiles = groups(push.heads / push.kv_heads, tile.heads);
  const double work = work_per_token(push), fit = std::min(context.max_work() / work, 1e9);
  const uint32_t range = std::max(u32(static_cast<int64_t>(fit)) / tile.tokens, 1u) * tile.tokens;
  for (uint32_t first = 0; first < n_rows; first += range) {
    const uint32_t count = std::min(range, n_rows - first);
    push.first_token = first;
    push.last_token = first + count;
    stream.dispatch(shader, constants, operands, push,
                    {push.chunks, push.kv_heads * head_tiles, groups(count, tile.tokens)}, work * count);
  }
}

void paged_attention(const Prepared& prepared, const Launch& launch, Stream& s) {
  AttentionInputs inputs;
  inputs.params = launch.param<AttentionParams>();
  inputs.sinks = launch.inputs[1];
  attend(prepared, launch, vulkan(s), inputs);
}

}  // namespace

int cache_type(DataType type) {
  for (size_t i = 0; i < kCacheTypes.size(); ++i) {
    if (kCacheTypes[i].type == type) return static_cast<int>(i);
  }
  return -1;
}

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

bool supports_cache(const OpDesc& op, const Device& device) {
  const CacheDesc& c = *op.cache;
  const Context& context = context_of(device);
  return can_store(c.key_type, c.key_dim) && (c.latent || can_store(c.value_type, c.value_dim)) &&
         (!c.latent || groups(c.value_dim, 128) <= kMostDims) && shared_bytes(c, context, 1) <= context.max_shared();
}

size_t cache_block_bytes(const CacheDesc& c) {
  if (cache_type(c.key_type) < 0 || cache_type(value_type_of(c)) < 0) return 0;
  const int64_t words = row_words(c.key_type, c.key_dim) + row_words(value_type_of(c), c.stored_value_dim());
  return sizeof(uint32_t) * static_cast<size_t>(c.entries_per_block()) * static_cast<size_t>(c.n_kv_head) *
         static_cast<size_t>(words);
}

std::unique_ptr<Prepared> prepare_attention(const OpDesc& op, Device& device) {
  auto prepared = std::make_unique<Prepared>();
  const int chunks = chunks_of(op, context_of(device));
  if (chunks > 1) {
    const size_t rows = static_cast<size_t>(op.inputs[0]->shape[0] * op.inputs[0]->shape[1]);
    prepared->scratch_bytes = sizeof(float) * rows * chunks * (static_cast<size_t>(op.cache->value_dim) + 2);
  }
  return prepared;
}

void attend(const Prepared& prepared, const Launch& launch, VulkanStream& stream, const AttentionInputs& in) {
  const Tile tile = tile_of(launch.op, stream.context());
  const uint32_t chunks = u32(chunks_of(launch.op, stream.context()));
  const AttentionOperands o = attention_operands(stream, prepared, launch, in, chunks);
  const AttentionPush push = attention_push(launch, in, o, tile, chunks);
  const bool sparse = static_cast<bool>(in.log_sums);
  dispatch_attention(stream, launch, o, push, tile, sparse);
  if (chunks == 1) return;
  Operand parts = o.parts;
  parts.written = false;
  const MergePush merge = {push.heads,
                           parts.at,
                           o.sinks.at,
                           o.out.at,
                           push.value_dim,
                           o.log_sums.at,
                           (in.sinks ? 1u : 0u) | (sparse ? 2u : 0u)};
  stream.dispatch("attention_merge", {}, {o.inputs, parts, o.sinks, o.out, o.log_sums}, merge,
                  {push.heads, rows_of(launch.inputs[0])});
}

std::span<const OpRecord> attention_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kKvStore, supports_cache, nothing_to_prepare, kv_store},
      {Op::kPagedAttention, supports_cache, prepare_attention, paged_attention},
  };
  return kRecords;
}

}  // namespace infer::vulkan
