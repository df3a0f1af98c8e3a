// select_positions and sparse_attention.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "ggml-like/ref/cache_view.h"
#include "ggml-like/ref/ref_ops.h"

namespace infer::ref {
namespace {

constexpr double kLowest = -std::numeric_limits<double>::infinity();

// Writes the numbers of the selected blocks. `scores`: of complete entries. `unfinished`: whether one more follows.
void select(const std::vector<double>& scores, bool unfinished, const SelectParams& params, int32_t* to) {
  const int n = (static_cast<int>(scores.size()) + params.block - 1) / params.block;
  std::vector<double> best(static_cast<size_t>(n), kLowest);
  for (size_t p = 0; p < scores.size(); ++p) best[p / params.block] = std::max(best[p / params.block], scores[p]);
  for (int b = std::max(0, n - params.n_last); b < n; ++b) best[b] = std::numeric_limits<double>::infinity();
  std::vector<int32_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return best[a] > best[b]; });
  order.resize(static_cast<size_t>(std::min(n, params.count)));
  std::sort(order.begin(), order.end());
  if (params.unfinished && unfinished) order.push_back(n);
  std::fill(std::copy(order.begin(), order.end(), to), to + params.count + (params.unfinished ? 1 : 0), -1);
}

void select_positions(const Prepared&, const HostLaunch& launch, Stream&) {
  const SelectParams& params = launch.param<SelectParams>();
  const CacheView view{launch.cache};
  const CacheDesc& cache = *launch.cache.desc;
  const TensorRef &q = launch.inputs[0], &weights = launch.inputs[1], &out = launch.outputs[0];
  const StepView& step = *launch.step;
  const int64_t heads = q.desc->shape[1], selections = out.desc->shape[1];
  std::vector<float> key(static_cast<size_t>(cache.key_dim));
  for (int t = 0; t < step.n_tokens(); ++t) {
    const auto table = step.block_table(cache.group, step.sequences()[t]);
    const size_t n = static_cast<size_t>(cache.visible_entries(step.positions()[t]));
    std::vector<std::vector<double>> scores(static_cast<size_t>(selections), std::vector<double>(n, 0.0));
    for (size_t p = 0; p < n; ++p) {
      traits(cache.key_type).to_float(view.key(table, static_cast<int>(p), 0), key.data(), cache.key_dim);
      for (int64_t h = 0; h < heads; ++h) {
        const float* query = q.data<float>() + t * q.desc->row_stride + h * cache.key_dim;
        double dot = 0;
        for (int i = 0; i < cache.key_dim; ++i) dot += static_cast<double>(query[i]) * key[i];
        if (!params.sum_heads) {
          scores[h][p] = std::isnan(dot) ? kLowest : dot;
        } else if (dot > 0) {
          scores[0][p] += weights ? weights.data<float>()[t * weights.desc->row_stride + h] * dot : dot;
        }
      }
    }
    for (int64_t s = 0; s < selections; ++s) {
      const bool unfinished = (step.positions()[t] + 1) % cache.stride != 0;
      select(scores[s], unfinished, params, out.data<int32_t>() + (t * selections + s) * out.desc->shape[2]);
    }
  }
}

// The entries that a token sees in one KV head.
std::vector<int> seen_entries(const HostLaunch& launch, int token, int kv_head) {
  const SparseAttentionParams& params = launch.param<SparseAttentionParams>();
  const TensorRef& blocks = launch.inputs[1];
  const int n = launch.cache.desc->visible_entries(launch.step->positions()[token]);
  std::vector<int> entries;
  if (!blocks) {
    for (int e = params.window > 0 ? std::max(0, n - params.window) : 0; e < n; ++e) entries.push_back(e);
    return entries;
  }
  const int64_t selections = blocks.desc->shape[1], count = blocks.desc->shape[2];
  const int32_t* selected = blocks.data<int32_t>() + (token * selections + (selections > 1 ? kv_head : 0)) * count;
  for (int64_t i = 0; i < count && selected[i] >= 0; ++i) {
    const int begin = selected[i] * params.block;
    for (int e = begin; e < std::min(begin + params.block, n); ++e) entries.push_back(e);
  }
  return entries;
}

void sparse_attention(const Prepared&, const HostLaunch& launch, Stream&) {
  const CacheView view{launch.cache};
  const CacheDesc& cache = *launch.cache.desc;
  const TensorRef &q = launch.inputs[0], &sinks = launch.inputs[2];
  const StepView& step = *launch.step;
  const int n_head = static_cast<int>(q.desc->shape[1]), group = n_head / cache.n_kv_head;
  std::vector<float> row(static_cast<size_t>(std::max(cache.key_dim, cache.value_dim)));
  for (int t = 0; t < step.n_tokens(); ++t) {
    const auto table = step.block_table(cache.group, step.sequences()[t]);
    for (int h = 0; h < n_head; ++h) {
      const auto load_key = [&](int e) {
        traits(cache.key_type).to_float(view.key(table, e, h / group), row.data(), cache.key_dim);
      };
      const float* query = q.data<float>() + t * q.desc->row_stride + h * cache.key_dim;
      const std::vector<int> entries = seen_entries(launch, t, h / group);
      std::vector<double> scores;
      double best = sinks ? sinks.data<float>()[h] : kNothingSeen;
      for (const int e : entries) {
        load_key(e);
        double score = 0;
        for (int i = 0; i < cache.key_dim; ++i) score += static_cast<double>(query[i]) * row[i];
        scores.push_back(score * launch.param<SparseAttentionParams>().scale);
        best = std::max(best, scores.back());
      }
      double total = sinks ? std::exp(sinks.data<float>()[h] - best) : 0;
      std::vector<double> sum(static_cast<size_t>(cache.value_dim), 0.0);
      for (size_t i = 0; i < entries.size(); ++i) {
        const double weight = std::exp(scores[i] - best);
        total += weight;
        if (cache.latent) load_key(entries[i]);
        else traits(cache.value_type).to_float(view.value(table, entries[i], h / group), row.data(), cache.value_dim);
        for (int j = 0; j < cache.value_dim; ++j) sum[j] += weight * row[j];
      }
      const int64_t at = static_cast<int64_t>(t) * n_head + h;
      for (int j = 0; j < cache.value_dim; ++j) {
        launch.outputs[0].data<float>()[at * cache.value_dim + j] =
            static_cast<float>(entries.empty() ? 0 : sum[j] / total);
      }
      launch.outputs[1].data<float>()[at] = static_cast<float>(entries.empty() ? kNothingSeen : best + std::log(total));
    }
  }
}

}  // namespace

std::span<const OpRecord> sparse_attention_ops() {
  static constexpr OpRecord kRecords[] = {
      reference<select_positions>(Op::kSelectPositions),
      reference<sparse_attention>(Op::kSparseAttention),
  };
  return kRecords;
}

}  // namespace infer::ref
