// ngram_embed, short_conv, gated_pool, token_shift, selective_scan, delta_rule, wkv: operations on recurrent states.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ggml-like/error.h"
#include "ggml-like/ref/ref_ops.h"

namespace infer::ref {
namespace {

// Calls f(row of the step, state) for each token, in the order of its sequence. Before the token at position 0, the
// first `values` values of the state are zeros.
template <typename F>
void for_each_token(const HostLaunch& launch, int64_t values, F f) {
  const CacheDesc& desc = *launch.cache.desc;
  float* slots = reinterpret_cast<float*>(launch.cache.buffer->host() + launch.cache.offset);
  for (const StateRun& run : state_runs(*launch.step, desc.group)) {
    CHECK_INTERNAL(run.slot >= 0 && run.slot < launch.cache.n_blocks);
    float* state = slots + run.slot * desc.slot_values + desc.first_value;
    if (run.empty) std::fill_n(state, values, 0.0f);
    for (int t = run.first; t < run.first + run.count; ++t) f(t, state);
  }
}

float* row(const TensorRef& t, int i) { return t.data<float>() + i * t.desc->row_stride; }

void ngram_embed(const Prepared&, const HostLaunch& launch, Stream&) {
  const TensorRef &table = launch.inputs[0], &out = launch.outputs[0];
  const NgramTables& tables = *launch.param<NgramParams>().tables;
  const int64_t d = table.desc->shape[1], n = tables.state_values();
  std::vector<int32_t> rows(static_cast<size_t>(tables.lookups()));
  for_each_token(launch, n, [&](int t, float* state) {
    const int32_t id = launch.step->tokens()[t];
    tables.rows_of(id, state, rows.data());
    for (size_t i = 0; i < rows.size(); ++i) {
      traits(table.desc->type)
          .to_float(table.data<std::byte>() + rows[i] * row_bytes(table.desc->type, d), row(out, t) + i * d, d);
    }
    std::copy(state + 1, state + n, state);
    state[n - 1] = static_cast<float>(id + 1);
  });
}

void short_conv(const Prepared&, const HostLaunch& launch, Stream&) {
  const TensorRef &x = launch.inputs[0], &weight = launch.inputs[1], &bias = launch.inputs[2];
  const ShortConvParams& params = launch.param<ShortConvParams>();
  const int64_t c = weight.desc->shape[0], width = weight.desc->shape[1], before = (width - 1) * params.dilation;
  for_each_token(launch, before * c, [&](int t, float* state) {
    for (int64_t i = 0; i < c; ++i) {
      const float* w = weight.data<float>() + i * width;
      const float now = row(x, t)[i];
      double sum = static_cast<double>(w[width - 1]) * now + (bias ? bias.data<float>()[i] : 0.0f);
      for (int64_t j = 0; j < width - 1; ++j) sum += static_cast<double>(w[j]) * state[j * params.dilation * c + i];
      if (params.silu) sum = activate(UnaryKind::kSilu, sum);
      row(launch.outputs[0], t)[i] = static_cast<float>(sum);
      for (int64_t j = 0; j < before - 1; ++j) state[j * c + i] = state[(j + 1) * c + i];
      state[(before - 1) * c + i] = now;
    }
  });
}

void gated_pool(const Prepared&, const HostLaunch& launch, Stream&) {
  const TensorRef &x = launch.inputs[0], &gates = launch.inputs[1], &offsets = launch.inputs[2];
  const int64_t c = x.desc->shape[1], d = x.desc->shape[2];
  const int block = launch.param<GatedPoolParams>().block;
  for_each_token(launch, 3 * c * d, [&](int t, float* state) {
    const int place = launch.step->positions()[t] % block;
    for (int64_t i = 0; i < c * d; ++i) {
      // The last part of a row belongs to the current block, whose sums come first in the state.
      float* largest = state + (c - 1 - i / d) * 3 * d + i % d;
      float *total = largest + d, *sum = total + d;
      const double gate = double{row(gates, t)[i]} + (offsets ? offsets.data<float>()[place * c * d + i] : 0.0f);
      const double best = *total > 0 ? std::max<double>(*largest, gate) : gate;
      const double before = std::exp(*largest - best), weight = std::exp(gate - best);
      *sum = static_cast<float>((*total > 0 ? *sum * before : 0) + weight * row(x, t)[i]);
      *total = static_cast<float>((*total > 0 ? *total * before : 0) + weight);
      *largest = static_cast<float>(best);
    }
    for (int64_t i = 0; i < d; ++i) row(launch.outputs[0], t)[i] = state[2 * d + i] / state[d + i];
    if (place != block - 1) return;
    std::copy(state + 3 * d, state + 3 * c * d, state);
    std::fill_n(state + 3 * (c - 1) * d, 3 * d, 0.0f);
  });
}

void token_shift(const Prepared&, const HostLaunch& launch, Stream&) {
  const TensorRef& x = launch.inputs[0];
  const int64_t c = x.desc->shape[1];
  for_each_token(launch, c, [&](int t, float* state) {
    std::copy_n(state, c, row(launch.outputs[0], t));
    std::copy_n(row(x, t), c, state);
  });
}

void selective_scan(const Prepared&, const HostLaunch& launch, Stream&) {
  const TensorRef &x = launch.inputs[0], &dt = launch.inputs[1], &b = launch.inputs[2], &c = launch.inputs[3];
  const TensorRef &a = launch.inputs[4], &skip = launch.inputs[5];
  const int64_t h = x.desc->shape[1], d = x.desc->shape[2], per_group = h / b.desc->shape[1], n = b.desc->shape[2];
  const bool per_value = a.desc->shape.rank == 2;
  for_each_token(launch, h * d * n, [&](int t, float* state) {
    for (int64_t i = 0; i < h * d; ++i) {
      const int64_t head = i / d, group = head / per_group * n;
      const double xi = row(x, t)[i], step = activate(UnaryKind::kSoftplus, row(dt, t)[head]);
      double sum = skip ? skip.data<float>()[head] * xi : 0;
      for (int64_t j = 0; j < n; ++j) {
        const double decay = std::exp(step * a.data<float>()[per_value ? head * n + j : head]);
        float& s = state[i * n + j];
        s = static_cast<float>(decay * s + step * xi * row(b, t)[group + j]);
        sum += static_cast<double>(s) * row(c, t)[group + j];
      }
      row(launch.outputs[0], t)[i] = static_cast<float>(sum);
    }
  });
}

void delta_rule(const Prepared&, const HostLaunch& launch, Stream&) {
  const TensorRef &q = launch.inputs[0], &k = launch.inputs[1], &v = launch.inputs[2], &dt = launch.inputs[3];
  const TensorRef &beta = launch.inputs[4], &a = launch.inputs[5];
  const int64_t g = q.desc->shape[1], n = q.desc->shape[2], h = v.desc->shape[1], d = v.desc->shape[2];
  const DeltaRuleParams& params = launch.param<DeltaRuleParams>();
  const bool per_channel = dt.desc->shape.rank == 3;
  const auto decay_of = [&](int64_t head, double step) {
    const double rate = a.data<float>()[head];
    return std::exp(params.lowest_decay < 0 ? params.lowest_decay * activate(UnaryKind::kSigmoid, rate * step)
                                            : rate * activate(UnaryKind::kSoftplus, step));
  };
  for_each_token(launch, h * n * d, [&](int t, float* state) {
    for (int64_t i = 0; i < h * d; ++i) {
      const int64_t head = i / d, group = params.tiled_heads ? head % g : head / (h / g);
      const float *qi = row(q, t) + group * n, *ki = row(k, t) + group * n;
      float* s = state + head * n * d + i % d;  // a column, with a stride of d
      double read = 0, sum = 0;
      for (int64_t j = 0; j < n; ++j) {
        const double decay = decay_of(head, row(dt, t)[per_channel ? head * n + j : head]);
        s[j * d] = static_cast<float>(decay * s[j * d]);
        read += static_cast<double>(s[j * d]) * ki[j];
      }
      const double correction = row(beta, t)[head] * (row(v, t)[i] - read);
      for (int64_t j = 0; j < n; ++j) {
        s[j * d] = static_cast<float>(s[j * d] + ki[j] * correction);
        sum += static_cast<double>(s[j * d]) * qi[j];
      }
      row(launch.outputs[0], t)[i] = static_cast<float>(sum);
    }
  });
}

void wkv(const Prepared&, const HostLaunch& launch, Stream&) {
  const TensorRef &r = launch.inputs[0], &k = launch.inputs[1], &v = launch.inputs[2], &w = launch.inputs[3];
  const TensorRef &first = launch.inputs[4], &a = launch.inputs[5], &b = launch.inputs[6];
  const int64_t h = r.desc->shape[1], n = r.desc->shape[2];
  for_each_token(launch, h * n * n, [&](int t, float* state) {
    for (int64_t i = 0; i < h * n; ++i) {
      const int64_t head = i / n * n;  // its first channel
      const float *ri = row(r, t) + head, *ki = row(k, t) + head, *wi = row(w, t) + head;
      float* s = state + head * n + i % n;  // a column, with a stride of n
      const double vi = row(v, t)[i];
      double read = 0, sum = 0, bonus = 0;
      for (int64_t j = 0; a && j < n; ++j) read += static_cast<double>(s[j * n]) * row(a, t)[head + j];
      for (int64_t j = 0; j < n; ++j) {
        const double decay =
            std::exp(a ? -0.606531 * activate(UnaryKind::kSigmoid, wi[j]) : -std::exp(static_cast<double>(wi[j])));
        if (!a) sum += static_cast<double>(s[j * n]) * ri[j];
        s[j * n] = static_cast<float>(decay * s[j * n] + ki[j] * vi + (a ? row(b, t)[head + j] * read : 0));
        if (a) sum += static_cast<double>(s[j * n]) * ri[j];
        bonus += static_cast<double>(ri[j]) * first.data<float>()[head + j] * ki[j];
      }
      row(launch.outputs[0], t)[i] = static_cast<float>(sum);
      row(launch.outputs[1], t)[i] = static_cast<float>(vi * bonus);
    }
  });
}

}  // namespace

std::span<const OpRecord> recurrent_ops() {
  static constexpr OpRecord kRecords[] = {
      reference<ngram_embed>(Op::kNgramEmbed),
      reference<short_conv>(Op::kShortConv),
      reference<gated_pool>(Op::kGatedPool),
      reference<token_shift>(Op::kTokenShift),
      reference<selective_scan>(Op::kSelectiveScan),
      reference<delta_rule>(Op::kDeltaRule),
      reference<wkv>(Op::kWkv),
  };
  return kRecords;
}

}  // namespace infer::ref
