// moe_route and moe_combine.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "ggml-like/ref/ref_ops.h"

namespace infer::ref {
namespace {

// Indices of the `count` largest scores, best first, ties to the lower index. NaN counts as the smallest.
std::vector<int> largest(const std::vector<double>& scores, int count) {
  std::vector<int> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto value = [&](int i) {
    return std::isnan(scores[i]) ? -std::numeric_limits<double>::infinity() : scores[i];
  };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return value(a) > value(b); });
  order.resize(count);
  return order;
}

double gate(Gating gating, double logit) {
  switch (gating) {
    case Gating::kSigmoid:
    case Gating::kSigmoidOfSelected:
      return activate(UnaryKind::kSigmoid, logit);
    case Gating::kSqrtSoftplus:
      return std::sqrt(activate(UnaryKind::kSoftplus, logit));
    case Gating::kSoftmax:
    case Gating::kSoftmaxOfSelected:
      break;
  }
  return logit;
}

// Experts outside the best groups cannot be selected; a group's score is the sum of its two best experts.
void keep_best_groups(std::vector<double>& scores, int n_groups, int groups_used) {
  if (n_groups <= 1 || groups_used >= n_groups) return;
  const size_t size = scores.size() / n_groups;
  std::vector<double> group_score;
  for (int g = 0; g < n_groups; ++g) {
    std::vector<double> in_group(scores.begin() + g * size, scores.begin() + (g + 1) * size);
    std::sort(in_group.rbegin(), in_group.rend());
    group_score.push_back(in_group[0] + (size > 1 ? in_group[1] : 0));
  }
  const std::vector<int> best = largest(group_score, groups_used);
  for (int g = 0; g < n_groups; ++g) {
    if (std::find(best.begin(), best.end(), g) != best.end()) continue;
    std::fill_n(scores.begin() + g * size, size, -std::numeric_limits<double>::infinity());
  }
}

std::vector<double> softmax(const std::vector<double>& x) {
  const double best = *std::max_element(x.begin(), x.end());
  std::vector<double> y;
  for (const double v : x) y.push_back(std::exp(v - best));
  const double sum = std::accumulate(y.begin(), y.end(), 0.0);
  for (double& v : y) v /= sum;
  return y;
}

void moe_route(const Prepared&, const HostLaunch& launch, Stream&) {
  const MoeRouteParams& params = launch.param<MoeRouteParams>();
  const TensorRef &x = launch.inputs[0], &bias = launch.inputs[1], &experts = launch.inputs[2];
  const int64_t n_expert = x.desc->shape[1];
  for (int64_t t = 0; t < launch.rows(x); ++t) {
    const float* row = x.data<float>() + t * x.desc->row_stride;
    std::vector<double> probability(row, row + n_expert);
    if (params.gating == Gating::kSoftmax) probability = softmax(probability);
    if (params.gating == Gating::kSigmoid || params.gating == Gating::kSqrtSoftplus) {
      for (double& p : probability) p = gate(params.gating, p);
    }
    std::vector<double> score = probability;
    if (bias) {
      for (int64_t e = 0; e < n_expert; ++e) score[e] += bias.data<float>()[e];
    }
    keep_best_groups(score, params.n_groups, params.groups_used);
    std::vector<int> selected = largest(score, params.n_used);
    if (experts) {
      const int token = launch.step->tokens()[launch.token_row(x, t)];
      std::copy_n(experts.data<int32_t>() + int64_t{token} * params.n_used, params.n_used, selected.begin());
    }
    std::vector<double> weights;
    for (const int e : selected) weights.push_back(probability[e]);
    if (params.gating == Gating::kSoftmaxOfSelected) weights = softmax(weights);
    if (params.gating == Gating::kSigmoidOfSelected) {
      for (double& w : weights) w = gate(params.gating, w);
    }
    double sum = params.normalize ? std::accumulate(weights.begin(), weights.end(), 0.0) : 1;
    if (sum < kLeastWeightSum) sum = kLeastWeightSum;
    for (int u = 0; u < params.n_used; ++u) {
      launch.outputs[0].data<int32_t>()[t * params.n_used + u] = selected[u];
      launch.outputs[1].data<float>()[t * params.n_used + u] = static_cast<float>(weights[u] / sum * params.scale);
    }
  }
}

void moe_combine(const Prepared&, const HostLaunch& launch, Stream&) {
  const TensorRef &y = launch.inputs[0], &weights = launch.inputs[1], &out = launch.outputs[0];
  const int64_t used = y.desc->shape[1], d = y.desc->shape[2];
  for (int64_t t = 0; t < launch.rows(y); ++t) {
    for (int64_t i = 0; i < d; ++i) {
      double sum = 0;
      for (int64_t u = 0; u < used; ++u) {
        sum += static_cast<double>(weights.data<float>()[t * used + u]) * y.data<float>()[(t * used + u) * d + i];
      }
      out.data<float>()[t * d + i] = static_cast<float>(sum);
    }
  }
}

}  // namespace

std::span<const OpRecord> moe_ops() {
  static constexpr OpRecord kRecords[] = {
      reference<moe_route>(Op::kMoeRoute),
      reference<moe_combine>(Op::kMoeCombine),
  };
  return kRecords;
}

}  // namespace infer::ref
