// kv_store and paged_attention.
#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/cpu/attention.h"
#include "ggml-like/float_math.h"
#include "ggml-like/half.h"
#include "ggml-like/quant/cache_row.h"

namespace infer::cpu {
namespace {

// Stores n values as `type`, `stride` elements apart.
void store_values(DataType type, const float* x, int n, uint8_t* to, int stride) {
  for (int i = 0; i < n; ++i) {
    if (type == DataType::kF32) {
      std::memcpy(to + static_cast<int64_t>(i) * stride * 4, x + i, 4);
    } else {
      const uint16_t half = type == DataType::kF16 ? f32_to_f16(x[i]) : f32_to_bf16(x[i]);
      std::memcpy(to + static_cast<int64_t>(i) * stride * 2, &half, 2);
    }
  }
}

// Stores one token's key in `slot` of a head's keys. `row` is work space of row_bytes(type, n).
void store_key(DataType type, const float* x, int n, uint8_t* head, int slot, uint8_t* row) {
  const TypeTraits& t = traits(type);
  if (is_float(type)) return store_values(type, x, n, head + slot * static_cast<int64_t>(t.type_size), kBlockTokens);
  store_cache_row(type, x, row, n);
  const int n_f16 = n_f16_of(type), bytes = static_cast<int>(t.type_size);
  for (int first = 0; first < n; first += kBlock32, row += bytes, head += kBlockTokens * bytes) {
    for (int i = 0; i < n_f16; ++i) std::memcpy(head + 2 * (kBlockTokens * i + slot), row + 2 * i, 2);
    for (int i = 2 * n_f16; i < bytes; ++i) head[kBlockTokens * i + slot] = row[i];
  }
}

void store_value(DataType type, const float* x, int n, uint8_t* to) {
  if (is_float(type)) return store_values(type, x, n, to, 1);
  store_cache_row(type, x, to, n);
}

// Geometric slopes (https://arxiv.org/abs/2108.12409). If the number of heads is not a power of two, the remaining
// heads take every second slope of the next power.
float alibi_slope(int head, int n_head, float max_bias) {
  if (max_bias <= 0) return 0;
  int power = 1;
  while (power * 2 <= n_head) power *= 2;
  const double exponent = head < power ? -static_cast<double>(max_bias) * (head + 1) / power
                                       : -static_cast<double>(max_bias) / 2 * (2 * (head - power) + 1) / power;
  return static_cast<float>(portable_pow(2, exponent));
}

void kv_store(const Prepared&, const HostLaunch& launch, Stream& stream) {
  const CacheDesc& c = *launch.cache.desc;
  const TensorRef &k = launch.inputs[0], &v = launch.inputs[1];
  const StepView& step = *launch.step;
  const BlockLayout layout(c);
  parallel_ranges(cpu(stream), step.n_tokens(), 8, [&](int64_t begin, int64_t end, int) {
    std::vector<uint8_t> row(row_bytes(c.key_type, c.key_dim));
    for (int64_t t = begin; t < end; ++t) {
      const int position = step.positions()[t], entry = position / c.stride, slot = c.slot_of(entry);
      if (position != c.position_of(entry)) continue;
      uint8_t* block = block_at(launch.cache, layout, step.block_table(c.group, step.sequences()[t]), position);
      for (int h = 0; h < c.n_kv_head; ++h) {
        if (c.latent) {
          store_value(c.key_type, k.data<float>() + t * k.desc->row_stride + h * c.key_dim, c.key_dim,
                      block + h * layout.key_head + slot * layout.value_row);
          continue;
        }
        store_key(c.key_type, k.data<float>() + t * k.desc->row_stride + h * c.key_dim, c.key_dim,
                  block + h * layout.key_head, slot, row.data());
        store_value(c.value_type, v.data<float>() + t * v.desc->row_stride + h * c.value_dim, c.value_dim,
                    block + layout.values_at + h * layout.value_head + slot * layout.value_row);
      }
    }
  });
}

std::unique_ptr<Prepared> prepare_paged_attention(const OpDesc& op, Device& device) {
  auto prepared = std::make_unique<Prepared>();
  prepared->scratch_bytes = context_scratch_bytes(op, static_cast<CpuDevice&>(device));
  return prepared;
}

void paged_attention(const Prepared&, const HostLaunch& launch, Stream& stream) {
  attend_to_context(launch, cpu(stream), launch.param<AttentionParams>(), launch.inputs[1], nullptr,
                    launch.scratch.data<float>());
}

}  // namespace

size_t context_scratch_bytes(const OpDesc& op, const CpuDevice& device) {
  const size_t n_head = static_cast<size_t>(op.inputs[0]->shape[1]);
  return sizeof(float) * (scratch_floats(*op.cache) * device.n_threads() + n_head);
}

// A piece is some query heads of one KV head, for up to kQueries consecutive tokens of one sequence.
void attend_to_context(const HostLaunch& launch, CpuStream& stream, const AttentionParams& params,
                       const TensorRef& sinks, float* log_sums, float* scratch) {
  constexpr int kQueries = 8;
  const CacheDesc& c = *launch.cache.desc;
  const TensorRef &q = launch.inputs[0], &out = launch.outputs[0];
  const StepView& step = *launch.step;
  const BlockLayout layout(c);
  const int n_head = static_cast<int>(q.desc->shape[1]);
  const size_t per_thread = scratch_floats(c);
  float* slopes = scratch + per_thread * stream.pool().size();
  for (int h = 0; h < n_head; ++h) slopes[h] = alibi_slope(h, n_head, params.alibi_max_bias);

  struct Run {
    int first, count;
  };
  std::vector<Run> runs;
  for (int t = 0; t < step.n_tokens(); ++t) {
    if (!runs.empty() && runs.back().count < kQueries && step.sequences()[t] == step.sequences()[t - 1])
      ++runs.back().count;
    else runs.push_back({t, 1});
  }
  const int64_t n_runs = static_cast<int64_t>(runs.size());
  const int parts = head_parts(n_head / c.n_kv_head, n_runs * c.n_kv_head, stream.pool().size());
  const int heads = n_head / c.n_kv_head / parts, groups = c.n_kv_head * parts;
  stream.pool().run(n_runs * groups, [&](int64_t piece, int thread) {
    // Later tokens see more positions: start with the longest pieces.
    const Run run = runs[n_runs - 1 - piece / groups];
    const int64_t first_head = piece % groups * heads, kv_head = piece % groups / parts;
    const int sequence = step.sequences()[run.first];
    AttentionArgs a = cache_args(launch.cache, layout, static_cast<int>(kv_head));
    a.params = &params;
    a.table = step.block_table(c.group, sequence).data();
    a.position = step.positions()[run.first];
    a.sequence_length = step.sequence_length(sequence);
    a.n_queries = run.count;
    a.heads = heads;
    a.query = q.data<float>() + run.first * q.desc->row_stride + first_head * c.key_dim;
    a.query_stride = q.desc->row_stride;
    a.slopes = slopes + first_head;
    a.sinks = sinks ? sinks.data<float>() + first_head : nullptr;
    a.log_sums = log_sums ? log_sums + int64_t{run.first} * n_head + first_head : nullptr;
    a.log_sums_stride = n_head;
    a.out_stride = out.desc->row_stride;
    a.out = out.data<float>() + run.first * a.out_stride + first_head * c.value_dim;
    a.scratch = scratch + per_thread * thread;
    stream.kernels().attention(a);
  });
}

std::span<const OpRecord> attention_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kKvStore, supports_cache, nothing_to_prepare, launch_on_host<kv_store>},
      {Op::kPagedAttention, supports_cache, prepare_paged_attention, launch_on_host<paged_attention>},
  };
  return kRecords;
}

}  // namespace infer::cpu
