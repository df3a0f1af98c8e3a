// embed, step_hidden, select_rows, top_k.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "ggml-like/error.h"
#include "ggml-like/ref/ref_ops.h"

namespace infer::ref {
namespace {

void embed(const Prepared&, const HostLaunch& launch, Stream&) {
  const TensorRef &table = launch.inputs[0], &out = launch.outputs[0];
  const int64_t d = table.desc->shape[1];
  const bool by_token = launch.param<EmbedParams>().rows == RowsBy::kToken;
  const std::span<const int32_t> rows = by_token ? launch.step->tokens() : launch.step->positions();
  for (size_t t = 0; t < rows.size(); ++t) {
    CHECK_INTERNAL(rows[t] >= 0 && rows[t] < table.desc->shape[0]);
    traits(table.desc->type)
        .to_float(table.data<std::byte>() + rows[t] * row_bytes(table.desc->type, d), out.data<float>() + t * d, d);
  }
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

void top_k(const Prepared&, const HostLaunch& launch, Stream&) {
  const TensorRef& x = launch.inputs[0];
  const int64_t n = x.desc->shape[1];
  const int k = launch.param<TopKParams>().k;
  std::vector<int32_t> order(static_cast<size_t>(n));
  for (int64_t r = 0; r < launch.rows(x); ++r) {
    const float* row = x.data<float>() + r * x.desc->row_stride;
    // NaN sorts last, so that the order is total for any logits.
    const auto better = [&](int32_t a, int32_t b) {
      const bool nan_a = std::isnan(row[a]), nan_b = std::isnan(row[b]);
      if (nan_a || nan_b) return nan_a == nan_b ? a < b : nan_b;
      return row[a] != row[b] ? row[a] > row[b] : a < b;
    };
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), better);
    for (int i = 0; i < k; ++i) {
      launch.outputs[0].data<int32_t>()[r * k + i] = order[i];
      launch.outputs[1].data<float>()[r * k + i] = row[order[i]];
    }
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += std::exp(static_cast<double>(row[i]) - row[order[0]]);
    launch.outputs[2].data<float>()[r] = static_cast<float>(row[order[0]] + std::log(sum));
  }
}

}  // namespace

std::span<const OpRecord> rows_ops() {
  static constexpr OpRecord kRecords[] = {
      reference<embed>(Op::kEmbed),
      reference<step_hidden>(Op::kStepHidden),
      reference<select_rows>(Op::kSelectRows),
      reference<top_k>(Op::kTopK),
  };
  return kRecords;
}

}  // namespace infer::ref
