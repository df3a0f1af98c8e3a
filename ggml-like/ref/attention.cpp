// kv_store and paged_attention.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ggml-like/quant/cache_row.h"
#include "ggml-like/ref/cache_view.h"
#include "ggml-like/ref/ref_ops.h"

namespace infer::ref {
namespace {

// https://arxiv.org/abs/2108.12409: geometric slopes. For head counts that are not powers of two, the rest are
// interleaved from the next power.
double alibi_slope(int head, int n_head, double max_bias) {
  if (max_bias <= 0) return 0;
  int power = 1;
  while (power * 2 <= n_head) power *= 2;
  return head < power ? std::exp2(-max_bias * (head + 1) / power)
                      : std::exp2(-max_bias / 2 * (2 * (head - power) + 1) / power);
}

void kv_store(const Prepared&, const HostLaunch& launch, Stream&) {
  const CacheView view{launch.cache};
  const CacheDesc& cache = *launch.cache.desc;
  const TensorRef &k = launch.inputs[0], &v = launch.inputs[1];
  const StepView& step = *launch.step;
  for (int t = 0; t < step.n_tokens(); ++t) {
    const auto table = step.block_table(cache.group, step.sequences()[t]);
    const int entry = step.positions()[t] / cache.stride;
    if (step.positions()[t] != cache.position_of(entry)) continue;
    for (int h = 0; h < cache.n_kv_head; ++h) {
      store_cache_row(cache.key_type, k.data<float>() + t * k.desc->row_stride + h * cache.key_dim,
                      view.key(table, entry, h), cache.key_dim);
      if (cache.latent) continue;
      store_cache_row(cache.value_type, v.data<float>() + t * v.desc->row_stride + h * cache.value_dim,
                      view.value(table, entry, h), cache.value_dim);
    }
  }
}

struct Visible {
  int begin, end;
};

// The positions that a token sees; the sequence has `length` so far.
Visible visible(const AttentionParams& params, int position, int length) {
  const int before = params.causal ? params.window - 1 : params.window / 2;
  const int end = params.causal ? position + 1 : length;
  if (params.window == 0) return {0, end};
  if (params.chunked) return {position / params.window * params.window, end};
  return {std::max(0, position - before), params.causal ? end : std::min(end, position + before + 1)};
}

void paged_attention(const Prepared&, const HostLaunch& launch, Stream&) {
  const AttentionParams& params = launch.param<AttentionParams>();
  const CacheView view{launch.cache};
  const CacheDesc& cache = *launch.cache.desc;
  const TensorRef &q = launch.inputs[0], &sinks = launch.inputs[1], &out = launch.outputs[0];
  const StepView& step = *launch.step;
  const int n_head = static_cast<int>(q.desc->shape[1]), group = n_head / cache.n_kv_head;
  std::vector<double> weights, sum(static_cast<size_t>(cache.value_dim));
  std::vector<float> row(static_cast<size_t>(std::max(cache.key_dim, cache.value_dim)));
  const auto load_key = [&](std::span<const int32_t> table, int p, int head) {
    traits(cache.key_type).to_float(view.key(table, p, head), row.data(), cache.key_dim);
  };
  for (int t = 0; t < step.n_tokens(); ++t) {
    const auto table = step.block_table(cache.group, step.sequences()[t]);
    const int position = step.positions()[t];
    const auto [begin, end] = visible(params, position, step.sequence_length(step.sequences()[t]));
    for (int h = 0; h < n_head; ++h) {
      const float* query = q.data<float>() + t * q.desc->row_stride + h * cache.key_dim;
      const double slope = alibi_slope(h, n_head, params.alibi_max_bias);
      double best = sinks ? sinks.data<float>()[h] : -std::numeric_limits<double>::infinity();
      weights.clear();
      for (int p = begin; p < end; ++p) {
        load_key(table, p, h / group);
        double score = 0;
        for (int i = 0; i < cache.key_dim; ++i) score += static_cast<double>(query[i]) * row[i];
        score *= params.scale;
        if (params.softcap > 0) score = params.softcap * std::tanh(score / params.softcap);
        score -= slope * std::abs(position - p);
        weights.push_back(score);
        best = std::max(best, score);
      }
      double total = sinks ? std::exp(sinks.data<float>()[h] - best) : 0;
      std::fill(sum.begin(), sum.end(), 0.0);
      for (int p = begin; p < end; ++p) {
        const double weight = std::exp(weights[p - begin] - best);
        total += weight;
        if (cache.latent) load_key(table, p, h / group);
        else traits(cache.value_type).to_float(view.value(table, p, h / group), row.data(), cache.value_dim);
        for (int i = 0; i < cache.value_dim; ++i) sum[i] += weight * row[i];
      }
      float* to = out.data<float>() + (static_cast<int64_t>(t) * n_head + h) * cache.value_dim;
      for (int i = 0; i < cache.value_dim; ++i) to[i] = static_cast<float>(sum[i] / total);
    }
  }
}

}  // namespace

std::span<const OpRecord> attention_ops() {
  static constexpr OpRecord kRecords[] = {
      reference<kv_store>(Op::kKvStore),
      reference<paged_attention>(Op::kPagedAttention),
  };
  return kRecords;
}

}  // namespace infer::ref
