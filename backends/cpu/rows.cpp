// embed, step_hidden, select_rows, top_k.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "backends/cpu/cpu_ops.h"
#include "ggml-like/error.h"
#include "ggml-like/float_math.h"

namespace infer::cpu {
namespace {

bool supports_embed(const OpDesc& op, const Device&) { return traits(op.inputs[0]->type).to_float != nullptr; }

void embed(const Prepared&, const HostLaunch& launch, Stream& stream) {
  const TensorRef &table = launch.inputs[0], &out = launch.outputs[0];
  const int64_t d = table.desc->shape[1];
  const bool by_token = launch.param<EmbedParams>().rows == RowsBy::kToken;
  const std::span<const int32_t> rows = by_token ? launch.step->tokens() : launch.step->positions();
  parallel_ranges(cpu(stream), static_cast<int64_t>(rows.size()), 8, [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t) {
      CHECK_INTERNAL(rows[t] >= 0 && rows[t] < table.desc->shape[0]);
      const std::byte* row = table.data<std::byte>() + rows[t] * row_bytes(table.desc->type, d);
      traits(table.desc->type).to_float(row, out.data<float>() + t * d, d);
    }
  });
}

void step_hidden(const Prepared&, const HostLaunch& launch, Stream&) {
  const TensorRef& out = launch.outputs[0];
  for (int t = 0; t < launch.step->n_tokens(); ++t) {
    const std::span<const int32_t> bits = launch.step->hidden_bits(t);
    CHECK_INTERNAL(std::ssize(bits) == out.desc->shape[1]);
    std::memcpy(out.data<float>() + t * std::ssize(bits), bits.data(), bits.size_bytes());
  }
}

void select_rows(const Prepared&, const HostLaunch& launch, Stream&) {
  const TensorRef &x = launch.inputs[0], &out = launch.outputs[0];
  const int64_t d = x.desc->shape[1];
  const std::span<const int32_t> rows = launch.step->output_rows();
  for (size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(out.data<float>() + i * d, x.data<float>() + rows[i] * x.desc->row_stride, d * sizeof(float));
  }
}

void top_k(const Prepared&, const HostLaunch& launch, Stream& stream) {
  const TensorRef& x = launch.inputs[0];
  const int64_t n = x.desc->shape[1];
  const int k = launch.param<TopKParams>().k;
  parallel_ranges(cpu(stream), launch.rows(x), 1, [&](int64_t begin, int64_t end, int) {
    std::vector<int32_t> order(static_cast<size_t>(n));
    for (int64_t r = begin; r < end; ++r) {
      const float* row = x.data<float>() + r * x.desc->row_stride;
      // NaN sorts last, so that the order is total for any logits.
      const auto better = [&](int32_t a, int32_t b) {
        const bool nan_a = std::isnan(row[a]), nan_b = std::isnan(row[b]);
        if (nan_a || nan_b) return nan_a == nan_b ? a < b : nan_b;
        return row[a] != row[b] ? row[a] > row[b] : a < b;
      };
      std::iota(order.begin(), order.end(), 0);
      std::partial_sort(order.begin(), order.begin() + k, order.end(), better);
      for (int i = 0; i < k; ++i) {
        launch.outputs[0].data<int32_t>()[r * k + i] = order[i];
        launch.outputs[1].data<float>()[r * k + i] = row[order[i]];
      }
      float maximum = 0, sum = 0;
      cpu(stream).kernels().max_and_sum(row, n, &maximum, &sum);
      // The sum is not finite: a logit is NaN or +infinity, or all are -infinity.
      launch.outputs[2].data<float>()[r] = sum > 0 ? static_cast<float>(maximum + portable_log(sum)) : NAN;
    }
  });
}

}  // namespace

std::span<const OpRecord> rows_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kEmbed, supports_embed, nothing_to_prepare, launch_on_host<embed>},
      {Op::kStepHidden, supports_any, nothing_to_prepare, launch_on_host<step_hidden>},
      {Op::kSelectRows, supports_any, nothing_to_prepare, launch_on_host<select_rows>},
      {Op::kTopK, supports_any, nothing_to_prepare, launch_on_host<top_k>},
  };
  return kRecords;
}

}  // namespace infer::cpu
