// moe_route and moe_combine.
#include <algorithm>

#include "backends/cuda/activations.cuh"
#include "backends/cuda/cuda_ops.h"
#include "backends/cuda/launch.h"
#include "backends/cuda/select.cuh"

namespace infer::cuda {
namespace {

constexpr int kMostExperts = 1024, kMostUsed = 64;

struct RouteShape {
  RowCount count;
  int experts;
  int64_t stride;  // of the rows of logits
  MoeRouteParams params;
  const int32_t* tokens;  // ids of the step's tokens
};

// A warp's working memory for one token.
struct Router {
  float probability[kMostExperts], score[kMostExperts], group_score[kMostExperts], weight[kMostUsed];
};

__device__ inline float gate(Gating gating, float logit, float largest) {
  if (gating == Gating::kSoftmax) return expf(logit - largest);
  if (gating == Gating::kSigmoid) return sigmoid_of(logit);
  if (gating == Gating::kSqrtSoftplus) return sqrtf(softplus_of(logit));
  return logit;
}

// The experts' weights before selection.
__device__ void find_probabilities(const RouteShape& s, const float* logits, Router& r) {
  const int lane = static_cast<int>(threadIdx.x);
  float largest = -INFINITY, sum = 0;
  for (int e = lane; e < s.experts; e += kWarp) largest = fmaxf(largest, logits[e]);
  largest = warp_max(largest);
  for (int e = lane; e < s.experts; e += kWarp) sum += r.probability[e] = gate(s.params.gating, logits[e], largest);
  if (s.params.gating != Gating::kSoftmax) return;
  sum = warp_sum(sum);
  for (int e = lane; e < s.experts; e += kWarp) r.probability[e] /= sum;
}

// Experts outside the best groups get the lowest score; a group's score is the sum of its two best experts.
__device__ void keep_best_groups(const RouteShape& s, Router& r) {
  const int lane = static_cast<int>(threadIdx.x), size = s.experts / s.params.n_groups;
  for (int g = lane; g < s.params.n_groups; g += kWarp) {
    float first = -INFINITY, second = -INFINITY;
    for (int e = g * size; e < (g + 1) * size; ++e) {
      const float score = r.score[e];
      if (score > first) {
        second = first;
        first = score;
      } else if (score > second) {
        second = score;
      }
    }
    r.group_score[g] = size > 1 ? first + second : first;
  }
  __syncwarp();
  for (int g = lane; g < s.params.n_groups; g += kWarp) {
    int better_groups = 0;
    for (int other = 0; other < s.params.n_groups; ++other) {
      const float a = r.group_score[other], b = r.group_score[g];
      better_groups += a > b || (a == b && other < g);
    }
    if (better_groups < s.params.groups_used) continue;
    for (int e = g * size; e < (g + 1) * size; ++e) r.score[e] = -INFINITY;
  }
  __syncwarp();
}

// The best expert after `last`; NaN counts as the smallest score.
__device__ Candidate next_expert(const RouteShape& s, const Router& r, const Candidate& last) {
  Candidate best = {0, kNothing};
  for (int e = static_cast<int>(threadIdx.x); e < s.experts; e += kWarp) {
    const float score = r.score[e];
    const Candidate c = {score != score ? -INFINITY : score, static_cast<uint32_t>(e)};
    if ((last.index == kNothing || better(last, c)) && better(c, best)) best = c;
  }
  return warp_best(best);
}

// One thread turns the probabilities of the selected experts into their weights.
__device__ void write_weights(const RouteShape& s, Router& r, float* to) {
  const MoeRouteParams& p = s.params;
  if (p.gating == Gating::kSoftmaxOfSelected) {
    float most = r.weight[0], sum = 0;
    for (int u = 1; u < p.n_used; ++u) most = fmaxf(most, r.weight[u]);
    for (int u = 0; u < p.n_used; ++u) sum += r.weight[u] = expf(r.weight[u] - most);
    for (int u = 0; u < p.n_used; ++u) r.weight[u] /= sum;
  }
  if (p.gating == Gating::kSigmoidOfSelected) {
    for (int u = 0; u < p.n_used; ++u) r.weight[u] = sigmoid_of(r.weight[u]);
  }
  float sum = 1;
  if (p.normalize) {
    sum = 0;
    for (int u = 0; u < p.n_used; ++u) sum += r.weight[u];
    if (sum < kLeastWeightSum) sum = kLeastWeightSum;
  }
  for (int u = 0; u < p.n_used; ++u) to[u] = r.weight[u] / sum * p.scale;
}

// A warp per token. Where the token's id selects the experts, only their weights are computed.
__global__ void moe_route_kernel(RouteShape s, const float* logits, const float* bias, const int32_t* experts_of,
                                 int32_t* ids, float* weights) {
  const int64_t token = blockIdx.x;
  if (token >= s.count.rows()) return;
  Router& r = shared_memory<Router>();
  find_probabilities(s, logits + token * s.stride, r);
  for (int e = static_cast<int>(threadIdx.x); e < s.experts; e += kWarp) {
    r.score[e] = bias ? r.probability[e] + bias[e] : r.probability[e];
  }
  __syncwarp();
  if (s.params.n_groups > 1 && s.params.groups_used < s.params.n_groups) keep_best_groups(s, r);
  const int used = s.params.n_used;
  Candidate last = {0, kNothing};
  for (int u = 0; u < used; ++u) {
    if (experts_of) last.index = static_cast<uint32_t>(experts_of[int64_t{s.tokens[token]} * used + u]);
    else last = next_expert(s, r, last);
    if (threadIdx.x > 0) continue;
    r.weight[u] = r.probability[last.index];
    ids[token * used + u] = static_cast<int32_t>(last.index);
  }
  if (threadIdx.x == 0) write_weights(s, r, weights + token * used);
}

struct CombineShape {
  RowCount count;
  int64_t d;
  int used;
};
__global__ void moe_combine_kernel(CombineShape s, const float* y, const float* weights, float* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= s.d) return;
  const int32_t rows = s.count.rows();
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    float sum = 0;
    for (int u = 0; u < s.used; ++u) sum = fmaf(weights[row * s.used + u], y[(row * s.used + u) * s.d + i], sum);
    out[row * s.d + i] = sum;
  }
}

// Row i belongs to token i only where rows are tokens, so only then is its id known.
bool supports_moe_route(const OpDesc& op, const Device&) {
  const TensorDesc& logits = *op.inputs[0];
  return (!op.inputs[2] || logits.rows == RowKind::kTokens) && logits.shape[1] <= kMostExperts &&
         op.param<MoeRouteParams>().n_used <= kMostUsed;
}

void moe_route(const Prepared&, const Launch& launch, Stream& stream) {
  const TensorRef& x = launch.inputs[0];
  const RouteShape shape = {row_count(launch, *x.desc), static_cast<int>(x.desc->shape[1]), x.desc->row_stride,
                            launch.param<MoeRouteParams>(), step_address(launch) + launch.step_layout->tokens_at};
  launch_kernel(cuda_stream(stream), {dim3(static_cast<unsigned>(rows_of(x))), kWarp}, moe_route_kernel, shape,
                address<const float>(x), address<const float>(launch.inputs[1]),
                address<const int32_t>(launch.inputs[2]), address<int32_t>(launch.outputs[0]),
                address<float>(launch.outputs[1]));
}

void moe_combine(const Prepared&, const Launch& launch, Stream& stream) {
  constexpr unsigned kThreads = 256;
  const TensorRef& y = launch.inputs[0];
  const CombineShape shape = {row_count(launch, *y.desc), y.desc->shape[2], static_cast<int>(y.desc->shape[1])};
  const dim3 grid(blocks_for(shape.d, kThreads), static_cast<unsigned>(std::min(rows_of(y), kMostBlocksY)));
  launch_kernel(cuda_stream(stream), {grid, kThreads}, moe_combine_kernel, shape, address<const float>(y),
                address<const float>(launch.inputs[1]), address<float>(launch.outputs[0]));
}

}  // namespace

std::span<const OpRecord> moe_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kMoeRoute, supports_moe_route, nothing_to_prepare, moe_route},
      {Op::kMoeCombine, supports_any, nothing_to_prepare, moe_combine},
  };
  return kRecords;
}

}  // namespace infer::cuda
