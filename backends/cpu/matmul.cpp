// matmul and matmul_experts: all threads quantize the activations once, then each takes ranges of weight rows.
#include <algorithm>
#include <vector>

#include "backends/cpu/cpu_ops.h"
#include "ggml-like/error.h"

namespace infer::cpu {
namespace {

// The size of the quantized activations of n tokens in bytes (zero for float weights).
size_t activation_bytes(DataType type, int64_t k, int64_t n_tokens) {
  const ActivationFormat format = traits(type).activation;
  if (format == ActivationFormat::kF32) return 0;
  const int64_t padded = padded_tokens(n_tokens);
  return whole_cache_lines(format == ActivationFormat::kInt8Per256 ? k / 256 * padded * sizeof(Activation256)
                                                                   : k / 32 * padded * sizeof(Activation32));
}

int threads_of(Device& device) { return static_cast<CpuDevice&>(device).n_threads(); }

// The layout of the scratch memory: activations, then the scratch memory of the kernel for each thread.
struct ScratchLayout {
  size_t activations, per_thread;
  ScratchLayout(DataType type, int64_t k, int64_t n_tokens)
      : activations(activation_bytes(type, k, n_tokens)),
        per_thread(whole_cache_lines(matmul_scratch_bytes(n_tokens, k))) {}
};

// Splits the rows of a matrix among threads: few large pieces of whole row groups, but enough that a slow thread does
// not hold up the others.
struct RowPieces {
  int64_t n, groups, pieces;
  RowPieces(int64_t n_rows, const ThreadPool& pool)
      : n(n_rows),
        groups((n + kMatmulRows - 1) / kMatmulRows),
        pieces(std::min<int64_t>(groups, pool.active_threads() == 1 ? 1 : pool.active_threads() * 8)) {}
  int64_t first_row(int64_t piece) const { return std::min(n, groups * piece / pieces * kMatmulRows); }
};

// One matmul of a weight matrix with some tokens, given by pointers to their inputs and outputs.
struct Matmul {
  DataType type;
  const uint8_t* weight;
  int64_t n, k;
  std::span<const float* const> inputs;
  std::span<float* const> outputs;
  std::byte* scratch;
  const float* bias;
};

void quantize(CpuStream& stream, const Matmul& p) {
  const int64_t tokens = static_cast<int64_t>(p.inputs.size()), padded = padded_tokens(tokens);
  const KernelTable& kernels = stream.kernels();
  // Kernels read no padding after a single token, and quantizing one is not worth waking other threads.
  parallel_ranges(stream, tokens == 1 ? 1 : padded, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t) {
      // Padding tokens repeat the last one: their results are computed and discarded.
      const float* x = p.inputs[std::min(t, tokens - 1)];
      if (traits(p.type).activation == ActivationFormat::kInt8Per256) {
        kernels.quantize256(x, reinterpret_cast<Activation256*>(p.scratch) + t, padded, p.k / 256);
      } else {
        kernels.quantize32(x, reinterpret_cast<Activation32*>(p.scratch) + t, padded, p.k / 32);
      }
    }
  });
}

// The address at which a thread begins to read a weight.
const uint8_t* beginning(const TensorRef& weight, const ThreadPool& pool, int thread) {
  const TensorDesc& desc = *weight.desc;
  const RowPieces rows(desc.shape[0], pool);
  return weight.data<uint8_t>() +
         rows.first_row(pool.first_piece(rows.pieces, thread)) * row_bytes(desc.type, desc.shape[1]);
}

void multiply(CpuStream& stream, const Matmul& p) {
  const KernelTable& kernels = stream.kernels();
  const bool floats = traits(p.type).activation == ActivationFormat::kF32;
  const int64_t tokens = static_cast<int64_t>(p.inputs.size());
  const MatmulKernel kernel = stream.matmul_kernel(p.type, tokens);
  const ScratchLayout layout(p.type, p.k, tokens);
  if (!floats) quantize(stream, p);
  const ThreadPool& pool = stream.pool();
  const RowPieces rows(p.n, pool);
  const TensorRef* next = stream.next_weight();
  stream.pool().run(rows.pieces, [&](int64_t i, int thread) {
    MatmulArgs a;
    a.type = p.type;
    a.weight = p.weight;
    a.row_bytes = static_cast<int64_t>(row_bytes(p.type, p.k));
    a.k = p.k;
    a.x = floats ? static_cast<const void*>(p.inputs.data()) : p.scratch;
    a.x_stride = padded_tokens(tokens);
    a.n_tokens = tokens;
    a.out = p.outputs.data();
    a.row_begin = rows.first_row(i);
    a.row_end = rows.first_row(i + 1);
    // A piece taken from another thread is a part of its own.
    const int64_t end = pool.first_piece(rows.pieces, thread + 1);
    const bool own = i >= pool.first_piece(rows.pieces, thread) && i < end;
    a.stream_end = p.weight + rows.first_row(own ? end : i + 1) * a.row_bytes;
    a.next = next ? beginning(*next, pool, thread) : a.stream_end;
    a.scratch = reinterpret_cast<float*>(p.scratch + layout.activations + layout.per_thread * thread);
    kernel(a);
    if (!p.bias) return;
    for (int64_t t = 0; t < tokens; ++t) {
      kernels.add(p.outputs[t] + a.row_begin, p.bias + a.row_begin, p.outputs[t] + a.row_begin,
                  a.row_end - a.row_begin);
    }
  });
}

bool supports_matmul(const OpDesc& op, const Device&) {
  const TensorDesc& weight = *op.inputs[1];
  const TypeTraits& type = traits(weight.type);
  return type.dot && weight.shape.last() % type.block_size == 0;
}

std::unique_ptr<Prepared> prepare_matmul(const OpDesc& op, Device& device) {
  // A type with two GEMV kernels is measured now instead of during generation.
  static_cast<CpuDevice&>(device).matmul_kernel(op.inputs[1]->type, 1);
  auto prepared = std::make_unique<Prepared>();
  const ScratchLayout layout(op.inputs[1]->type, op.inputs[1]->shape.last(), op.inputs[0]->shape[0]);
  prepared->scratch_bytes = layout.activations + layout.per_thread * threads_of(device);
  return prepared;
}

void matmul(const Prepared&, const HostLaunch& launch, Stream& stream) {
  const TensorRef &x = launch.inputs[0], &w = launch.inputs[1], &bias = launch.inputs[2], &out = launch.outputs[0];
  const int64_t rows = launch.rows(x);
  if (rows == 0) return;
  std::vector<const float*> inputs;
  std::vector<float*> outputs;
  for (int64_t t = 0; t < rows; ++t) {
    inputs.push_back(x.data<float>() + t * x.desc->row_stride);
    outputs.push_back(out.data<float>() + t * out.desc->row_stride);
  }
  multiply(cpu(stream), {w.desc->type, w.data<uint8_t>(), w.desc->shape[0], w.desc->shape[1], inputs, outputs,
                         launch.scratch.data<std::byte>(), bias ? bias.data<float>() : nullptr});
}

std::unique_ptr<Prepared> prepare_matmul_experts(const OpDesc& op, Device& device) {
  auto prepared = std::make_unique<Prepared>();
  // All tokens may select the same expert, at each of their ranks.
  const int64_t pairs = op.inputs[0]->shape[0] * (op.inputs[2] ? op.inputs[2]->shape[1] : 1);
  const ScratchLayout layout(op.inputs[1]->type, op.inputs[1]->shape.last(), pairs);
  prepared->scratch_bytes = layout.activations + layout.per_thread * threads_of(device);
  return prepared;
}

// For each expert the (token, rank) pairs that selected it, numbered token by token.
std::vector<std::vector<int64_t>> pairs_of_experts(const TensorRef& ids, int64_t rows, int64_t used, int64_t experts) {
  std::vector<std::vector<int64_t>> pairs(experts);
  for (int64_t i = 0; i < rows * used; ++i) {
    const int64_t e = ids ? ids.data<int32_t>()[i] : i % used;
    CHECK_INTERNAL(e >= 0 && e < experts);
    pairs[e].push_back(i);
  }
  return pairs;
}

// Runs one expert after the other.
void matmul_experts(const Prepared&, const HostLaunch& launch, Stream& stream) {
  const TensorRef &x = launch.inputs[0], &w = launch.inputs[1], &ids = launch.inputs[2], &bias = launch.inputs[3];
  const TensorRef& out = launch.outputs[0];
  const int64_t rows = launch.rows(x), experts = w.desc->shape[0], n = w.desc->shape[1], k = w.desc->shape[2];
  const int64_t used = out.desc->shape[1];
  const bool per_expert = x.desc->shape.rank == 3;
  const std::vector<std::vector<int64_t>> pairs = pairs_of_experts(ids, rows, used, experts);
  std::vector<const float*> inputs;
  std::vector<float*> outputs;
  for (int64_t e = 0; e < experts; ++e) {
    if (pairs[e].empty()) continue;
    inputs.clear();
    outputs.clear();
    for (const int64_t i : pairs[e]) {
      inputs.push_back(x.data<float>() + (per_expert ? i : i / used) * k);
      outputs.push_back(out.data<float>() + i * n);
    }
    multiply(cpu(stream), {w.desc->type, w.data<uint8_t>() + e * n * row_bytes(w.desc->type, k), n, k, inputs, outputs,
                           launch.scratch.data<std::byte>(), bias ? bias.data<float>() + e * n : nullptr});
  }
}

}  // namespace

std::span<const OpRecord> matmul_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kMatMul, supports_matmul, prepare_matmul, launch_on_host<matmul>},
      {Op::kMatMulExperts, supports_matmul, prepare_matmul_experts, launch_on_host<matmul_experts>},
  };
  return kRecords;
}

}  // namespace infer::cpu
