// moe_route and moe_combine.
#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/cpu/cpu_ops.h"

namespace infer::cpu {
namespace {

// Indices of the `count` largest scores, best first; among equals the lower index first. NaN counts as the smallest.
void largest(std::span<const float> scores, int count, std::vector<int>& order) {
  order.resize(scores.size());
  for (size_t i = 0; i < scores.size(); ++i) order[i] = static_cast<int>(i);
  const auto value = [&](int i) { return std::isnan(scores[i]) ? -INFINITY : scores[i]; };
  std::partial_sort(order.begin(), order.begin() + count, order.end(),
                    [&](int a, int b) { return value(a) != value(b) ? value(a) > value(b) : a < b; });
  order.resize(count);
}

// Experts outside the best groups cannot be selected. The score of a group is the sum of its two best experts.
void keep_best_groups(std::vector<float>& scores, int n_groups, int groups_used) {
  if (n_groups <= 1 || groups_used >= n_groups) return;
  const size_t size = scores.size() / n_groups;
  std::vector<float> group_score;
  std::vector<int> order;
  for (int g = 0; g < n_groups; ++g) {
    const std::span<const float> group(scores.data() + g * size, size);
    largest(group, static_cast<int>(std::min<size_t>(2, size)), order);
    group_score.push_back(group[order[0]] + (size > 1 ? group[order[1]] : 0));
  }
  largest(group_score, groups_used, order);
  for (int g = 0; g < n_groups; ++g) {
    if (std::find(order.begin(), order.end(), g) != order.end()) continue;
    std::fill_n(scores.begin() + g * size, size, -INFINITY);
  }
}

void moe_route(const Prepared&, const HostLaunch& launch, Stream& stream) {
  const MoeRouteParams& params = launch.param<MoeRouteParams>();
  const TensorRef &x = launch.inputs[0], &bias = launch.inputs[1], &table = launch.inputs[2];
  const KernelTable& kernels = cpu(stream).kernels();
  const int64_t experts = x.desc->shape[1];
  parallel_ranges(cpu(stream), launch.rows(x), 8, [&](int64_t begin, int64_t end, int) {
    std::vector<float> probability(experts), score(experts);
    std::vector<int> selected;
    for (int64_t t = begin; t < end; ++t) {
      const float* row = x.data<float>() + t * x.desc->row_stride;
      switch (params.gating) {
        case Gating::kSoftmax:
          kernels.softmax(row, probability.data(), experts);
          break;
        case Gating::kSigmoid:
          kernels.unary(UnaryKind::kSigmoid, row, probability.data(), experts);
          break;
        case Gating::kSqrtSoftplus:
          kernels.unary(UnaryKind::kSoftplus, row, probability.data(), experts);
          for (float& p : probability) p = std::sqrt(p);
          break;
        case Gating::kSoftmaxOfSelected:
        case Gating::kSigmoidOfSelected:
          std::copy_n(row, experts, probability.begin());
          break;
      }
      if (table) {
        const int32_t token = launch.step->tokens()[static_cast<size_t>(launch.token_row(x, t))];
        const int32_t* own = table.data<int32_t>() + int64_t{token} * params.n_used;
        selected.assign(own, own + params.n_used);
      } else {
        if (bias) kernels.add(probability.data(), bias.data<float>(), score.data(), experts);
        else score = probability;
        keep_best_groups(score, params.n_groups, params.groups_used);
        largest(score, params.n_used, selected);
      }
      float* weights = launch.outputs[1].data<float>() + t * params.n_used;
      for (int u = 0; u < params.n_used; ++u) {
        launch.outputs[0].data<int32_t>()[t * params.n_used + u] = selected[u];
        weights[u] = probability[selected[u]];
      }
      if (params.gating == Gating::kSoftmaxOfSelected) kernels.softmax(weights, weights, params.n_used);
      if (params.gating == Gating::kSigmoidOfSelected) {
        kernels.unary(UnaryKind::kSigmoid, weights, weights, params.n_used);
      }
      if (params.normalize) {
        float sum = 0;
        for (int u = 0; u < params.n_used; ++u) sum += weights[u];
        if (sum < kLeastWeightSum) sum = kLeastWeightSum;
        for (int u = 0; u < params.n_used; ++u) weights[u] /= sum;
      }
      if (params.scale != 1) kernels.scale(weights, params.scale, weights, params.n_used);
    }
  });
}

void moe_combine(const Prepared&, const HostLaunch& launch, Stream& stream) {
  const TensorRef &y = launch.inputs[0], &weights = launch.inputs[1], &out = launch.outputs[0];
  const int64_t used = y.desc->shape[1], d = y.desc->shape[2];
  const KernelTable& kernels = cpu(stream).kernels();
  parallel_ranges(cpu(stream), launch.rows(y), 4, [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t) {
      float* sum = out.data<float>() + t * d;
      kernels.scale(y.data<float>() + t * used * d, weights.data<float>()[t * used], sum, d);
      for (int64_t u = 1; u < used; ++u) {
        kernels.weighted_add(y.data<float>() + (t * used + u) * d, weights.data<float>()[t * used + u], sum, d);
      }
    }
  });
}

}  // namespace

std::span<const OpRecord> moe_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kMoeRoute, supports_any, nothing_to_prepare, launch_on_host<moe_route>},
      {Op::kMoeCombine, supports_any, nothing_to_prepare, launch_on_host<moe_combine>},
  };
  return kRecords;
}

}  // namespace infer::cpu
