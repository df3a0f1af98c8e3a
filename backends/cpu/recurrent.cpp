// ngram_embed, short_conv, gated_pool, token_shift, selective_scan, delta_rule, wkv. A piece of work is one sequence
// and some of its channels, heads or columns, whose states no other piece touches.
#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/cpu/cpu_ops.h"
#include "ggml-like/error.h"

namespace infer::cpu {
namespace {

constexpr int64_t kColumns = 64;  // of a state, per piece

// Calls f(run, its state, piece, thread) for each sequence of the step and each of its n pieces.
template <typename F>
void for_each_piece(const HostLaunch& launch, Stream& stream, int64_t n, const F& f) {
  const CacheDesc& desc = *launch.cache.desc;
  float* slots = reinterpret_cast<float*>(launch.cache.buffer->host() + launch.cache.offset);
  const std::vector<StateRun> runs = state_runs(*launch.step, desc.group);
  for (const StateRun& run : runs) CHECK_INTERNAL(run.slot >= 0 && run.slot < launch.cache.n_blocks);
  cpu(stream).pool().run(static_cast<int64_t>(runs.size()) * n, [&](int64_t i, int thread) {
    const StateRun& run = runs[static_cast<size_t>(i / n)];
    f(run, slots + run.slot * desc.slot_values + desc.first_value, i % n, thread);
  });
}

// Clears [begin, end) of each of n rows of a state.
void clear_columns(float* state, int64_t n, int64_t row, int64_t begin, int64_t end) {
  for (int64_t i = 0; i < n; ++i) std::fill(state + i * row + begin, state + i * row + end, 0.0f);
}

int64_t pieces_of(int64_t n, int64_t most) { return (n + most - 1) / most; }

const float* row(const TensorRef& t, int i) { return t.data<float>() + i * t.desc->row_stride; }
float* out_row(const HostLaunch& launch, int output, int i) {
  const TensorRef& t = launch.outputs[static_cast<size_t>(output)];
  return t.data<float>() + i * t.desc->row_stride;
}

bool supports_ngram_embed(const OpDesc& op, const Device&) { return traits(op.inputs[0]->type).to_float != nullptr; }

void ngram_embed(const Prepared&, const HostLaunch& launch, Stream& stream) {
  const TensorRef& table = launch.inputs[0];
  const NgramTables& tables = *launch.param<NgramParams>().tables;
  const int64_t d = table.desc->shape[1], n = tables.state_values();
  const std::span<const int32_t> ids = launch.step->tokens();
  for_each_piece(launch, stream, 1, [&](const StateRun& run, float* state, int64_t, int) {
    if (run.empty) clear_columns(state, 1, 0, 0, n);
    std::vector<int32_t> rows(static_cast<size_t>(tables.lookups()));
    for (int t = run.first; t < run.first + run.count; ++t) {
      tables.rows_of(ids[t], state, rows.data());
      float* to = out_row(launch, 0, t);
      for (const int32_t i : rows) {
        traits(table.desc->type).to_float(table.data<std::byte>() + i * row_bytes(table.desc->type, d), to, d);
        to += d;
      }
      std::copy(state + 1, state + n, state);
      state[n - 1] = static_cast<float>(ids[t] + 1);
    }
  });
}

void short_conv(const Prepared&, const HostLaunch& launch, Stream& stream) {
  constexpr int64_t kChannels = 256;
  const TensorRef &x = launch.inputs[0], &weight = launch.inputs[1], &bias = launch.inputs[2];
  const int64_t c = weight.desc->shape[0];
  for_each_piece(launch, stream, pieces_of(c, kChannels), [&](const StateRun& run, float* state, int64_t piece, int) {
    ShortConvArgs a;
    a.x = row(x, run.first);
    a.weight = weight.data<float>();
    a.bias = bias ? bias.data<float>() : nullptr;
    a.y = out_row(launch, 0, run.first);
    a.state = state;
    a.x_stride = x.desc->row_stride;
    a.y_stride = c;
    a.channels = c;
    a.begin = piece * kChannels;
    a.end = std::min(c, a.begin + kChannels);
    a.width = static_cast<int>(weight.desc->shape[1]);
    a.n_tokens = run.count;
    a.silu = launch.param<ShortConvParams>().silu;
    a.dilation = launch.param<ShortConvParams>().dilation;
    if (run.empty) clear_columns(state, int64_t{a.width - 1} * a.dilation, c, a.begin, a.end);
    cpu(stream).kernels().short_conv(a);
  });
}

void gated_pool(const Prepared&, const HostLaunch& launch, Stream& stream) {
  constexpr int64_t kChannels = 64;
  const TensorRef &x = launch.inputs[0], &gates = launch.inputs[1], &offsets = launch.inputs[2];
  const int64_t parts = x.desc->shape[1], d = x.desc->shape[2];
  for_each_piece(launch, stream, pieces_of(d, kChannels), [&](const StateRun& run, float* state, int64_t piece, int) {
    GatedPoolArgs a;
    a.x = row(x, run.first);
    a.gates = row(gates, run.first);
    a.offsets = offsets ? offsets.data<float>() : nullptr;
    a.y = out_row(launch, 0, run.first);
    a.state = state;
    a.x_stride = x.desc->row_stride;
    a.gates_stride = gates.desc->row_stride;
    a.parts = static_cast<int>(parts);
    a.dim = static_cast<int>(d);
    a.block = launch.param<GatedPoolParams>().block;
    a.position = launch.step->positions()[run.first];
    a.n_tokens = run.count;
    a.begin = static_cast<int>(piece * kChannels);
    a.end = static_cast<int>(std::min(d, (piece + 1) * kChannels));
    if (run.empty) clear_columns(state, 3 * parts, d, a.begin, a.end);
    cpu(stream).kernels().gated_pool(a);
  });
}

void token_shift(const Prepared&, const HostLaunch& launch, Stream& stream) {
  const TensorRef& x = launch.inputs[0];
  const int64_t c = x.desc->shape[1];
  const size_t bytes = static_cast<size_t>(c) * sizeof(float);
  for_each_piece(launch, stream, 1, [&](const StateRun& run, float* state, int64_t, int) {
    if (run.empty) clear_columns(state, 1, c, 0, c);
    for (int t = run.first; t < run.first + run.count; ++t) {
      std::memcpy(out_row(launch, 0, t), t == run.first ? state : row(x, t - 1), bytes);
    }
    std::memcpy(state, row(x, run.first + run.count - 1), bytes);
  });
}

void selective_scan(const Prepared&, const HostLaunch& launch, Stream& stream) {
  const TensorRef &x = launch.inputs[0], &dt = launch.inputs[1], &b = launch.inputs[2], &c = launch.inputs[3];
  const TensorRef &rates = launch.inputs[4], &skip = launch.inputs[5];
  const int64_t h = x.desc->shape[1], d = x.desc->shape[2], n = b.desc->shape[2];
  const int64_t heads = std::max<int64_t>(1, kColumns / d);  // of a piece
  for_each_piece(launch, stream, pieces_of(h, heads), [&](const StateRun& run, float* state, int64_t piece, int) {
    SelectiveScanArgs a;
    a.x = row(x, run.first);
    a.dt = row(dt, run.first);
    a.b = row(b, run.first);
    a.c = row(c, run.first);
    a.a = rates.data<float>();
    a.skip = skip ? skip.data<float>() : nullptr;
    a.y = out_row(launch, 0, run.first);
    a.state = state;
    a.x_stride = x.desc->row_stride;
    a.dt_stride = dt.desc->row_stride;
    a.b_stride = b.desc->row_stride;
    a.c_stride = c.desc->row_stride;
    a.y_stride = h * d;
    a.heads_per_group = static_cast<int>(h / b.desc->shape[1]);
    a.dim = static_cast<int>(d);
    a.n_state = static_cast<int>(n);
    a.head_begin = static_cast<int>(piece * heads);
    a.head_end = static_cast<int>(std::min(h, (piece + 1) * heads));
    a.n_tokens = run.count;
    a.a_per_value = rates.desc->shape.rank == 2;
    if (run.empty) clear_columns(state, 1, 0, a.head_begin * d * n, a.head_end * d * n);
    cpu(stream).kernels().scan(a);
  });
}

// For the decays of a head, per thread. The first input is [T, heads, n].
std::unique_ptr<Prepared> prepare_decays(const OpDesc& op, Device& device) {
  auto prepared = std::make_unique<Prepared>();
  prepared->scratch_bytes = sizeof(float) * static_cast<size_t>(op.inputs[0]->shape[2]) *
                            static_cast<size_t>(static_cast<CpuDevice&>(device).n_threads());
  return prepared;
}

void delta_rule(const Prepared&, const HostLaunch& launch, Stream& stream) {
  const TensorRef &q = launch.inputs[0], &k = launch.inputs[1], &v = launch.inputs[2], &dt = launch.inputs[3];
  const TensorRef &beta = launch.inputs[4], &rates = launch.inputs[5];
  const int64_t g = q.desc->shape[1], n = q.desc->shape[2], h = v.desc->shape[1], d = v.desc->shape[2];
  const int64_t blocks = pieces_of(d, kColumns);
  const DeltaRuleParams& params = launch.param<DeltaRuleParams>();
  const bool per_channel = dt.desc->shape.rank == 3;
  for_each_piece(launch, stream, h * blocks, [&](const StateRun& run, float* state, int64_t piece, int thread) {
    const int64_t head = piece / blocks, group = params.tiled_heads ? head % g : head / (h / g);
    DeltaRuleArgs a;
    a.q = row(q, run.first) + group * n;
    a.k = row(k, run.first) + group * n;
    a.v = row(v, run.first) + head * d;
    a.dt = row(dt, run.first) + (per_channel ? head * n : head);
    a.beta = row(beta, run.first) + head;
    a.a = rates.data<float>()[head];
    a.lowest_decay = params.lowest_decay;
    a.y = out_row(launch, 0, run.first) + head * d;
    a.state = state + head * n * d;
    a.decays = launch.scratch.data<float>() + thread * n;
    a.q_stride = q.desc->row_stride;
    a.k_stride = k.desc->row_stride;
    a.v_stride = v.desc->row_stride;
    a.dt_stride = dt.desc->row_stride;
    a.beta_stride = beta.desc->row_stride;
    a.y_stride = h * d;
    a.key_dim = static_cast<int>(n);
    a.value_dim = static_cast<int>(d);
    a.begin = static_cast<int>(piece % blocks * kColumns);
    a.end = static_cast<int>(std::min(d, a.begin + kColumns));
    a.n_tokens = run.count;
    a.dt_per_channel = per_channel;
    if (run.empty) clear_columns(a.state, n, d, a.begin, a.end);
    cpu(stream).kernels().delta_rule(a);
  });
}

void wkv(const Prepared&, const HostLaunch& launch, Stream& stream) {
  const TensorRef &r = launch.inputs[0], &k = launch.inputs[1], &v = launch.inputs[2], &w = launch.inputs[3];
  const TensorRef &first = launch.inputs[4], &read = launch.inputs[5], &write = launch.inputs[6];
  const int64_t h = r.desc->shape[1], n = r.desc->shape[2], blocks = pieces_of(n, kColumns);
  for_each_piece(launch, stream, h * blocks, [&](const StateRun& run, float* state, int64_t piece, int thread) {
    const int64_t head = piece / blocks * n;  // its first channel
    WkvArgs a;
    a.r = row(r, run.first) + head;
    a.k = row(k, run.first) + head;
    a.v = row(v, run.first) + head;
    a.w = row(w, run.first) + head;
    a.a = read ? row(read, run.first) + head : nullptr;
    a.b = write ? row(write, run.first) + head : nullptr;
    a.first = first.data<float>() + head;
    a.y = out_row(launch, 0, run.first) + head;
    a.bonus = out_row(launch, 1, run.first) + head;
    a.state = state + head * n;
    a.decays = launch.scratch.data<float>() + thread * n;
    a.r_stride = r.desc->row_stride;
    a.k_stride = k.desc->row_stride;
    a.v_stride = v.desc->row_stride;
    a.w_stride = w.desc->row_stride;
    a.a_stride = read ? read.desc->row_stride : 0;
    a.b_stride = write ? write.desc->row_stride : 0;
    a.y_stride = h * n;
    a.dim = static_cast<int>(n);
    a.begin = static_cast<int>(piece % blocks * kColumns);
    a.end = static_cast<int>(std::min(n, a.begin + kColumns));
    a.n_tokens = run.count;
    if (run.empty) clear_columns(a.state, n, n, a.begin, a.end);
    cpu(stream).kernels().wkv(a);
  });
}

}  // namespace

std::span<const OpRecord> recurrent_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kNgramEmbed, supports_ngram_embed, nothing_to_prepare, launch_on_host<ngram_embed>},
      {Op::kShortConv, supports_any, nothing_to_prepare, launch_on_host<short_conv>},
      {Op::kGatedPool, supports_any, nothing_to_prepare, launch_on_host<gated_pool>},
      {Op::kTokenShift, supports_any, nothing_to_prepare, launch_on_host<token_shift>},
      {Op::kSelectiveScan, supports_any, nothing_to_prepare, launch_on_host<selective_scan>},
      {Op::kDeltaRule, supports_any, prepare_decays, launch_on_host<delta_rule>},
      {Op::kWkv, supports_any, prepare_decays, launch_on_host<wkv>},
  };
  return kRecords;
}

}  // namespace infer::cpu
