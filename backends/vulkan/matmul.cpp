// matmul and matmul_experts. Small batches use matmul_vector, or matmul_dot, its variant for quantized activations;
// prompts use matmul_tiled or matmul_matrix. With `deterministic`, prompts use the former too, whose sums do not depend
// on the number of tokens. kernels.h chooses.
#include <algorithm>
#include <optional>

#include "backends/vulkan/shaders.h"
#include "backends/vulkan/vulkan_ops.h"
#include "ggml-like/error.h"

namespace infer::vulkan {
namespace {

constexpr int kVectorTokens = 8;          // the most in a workgroup of matmul_vector; tiles are faster from 9 on
constexpr int kVectorPairs = 32;          // the same for pairs of token and expert
constexpr int kVectorRows = 2;            // rows of the weight in a workgroup of matmul_vector
constexpr int kTile = 64;                 // rows and tokens of a tile
constexpr int kMaxGroupedExperts = 1024;  // of moe_group.comp

struct MatMulPush {
  uint32_t n, k, row_begin, row_end, row_bytes, weight_skip;
  uint32_t x_at, x_stride, x_per_expert, bias_at, out_at, count_at, fixed_rows;
  uint32_t used, ids_at, tiles_at;
  uint32_t flags;
};
struct GroupPush {
  uint32_t experts, used, count_at, fixed_rows, ids_at, has_ids, tiles_at, pairs_at;
};

std::string shader_of(const Context& context, ProductKernel kernel, DataType type) {
  const auto named = [&](const std::string& shader) { return concat(shader, ".", traits(type).name); };
  switch (kernel) {
    case ProductKernel::kVector:
      return named(reduction_shader(context, "matmul_vector"));
    case ProductKernel::kDot:
      return named("matmul_dot");
    case ProductKernel::kTiled:
      return named("matmul_tiled");
    case ProductKernel::kMatrix:
      return named(context.products.emulated_matrices ? "matmul_matrix_emulated" : "matmul_matrix");
  }
  return "";
}

// The form in which the shader reads activations; nullopt for plain F32.
std::optional<ActivationForm> form_of(ProductKernel kernel, DataType type) {
  if (kernel == ProductKernel::kMatrix) return ActivationForm::kHalves;
  if (kernel != ProductKernel::kDot) return std::nullopt;
  const bool large = traits(type).activation == ActivationFormat::kInt8Per256;
  return large ? ActivationForm::kInt8Per256 : ActivationForm::kInt8Per32;
}

bool in_tiles(ProductKernel kernel) { return kernel == ProductKernel::kTiled || kernel == ProductKernel::kMatrix; }

// For kMatMulExperts: the experts of a token, and the pairs of token and expert. Without ids, each token uses all.
int64_t used_experts(const OpDesc& op) { return op.inputs[2] ? op.inputs[2]->shape[1] : op.inputs[1]->shape[0]; }
int64_t pairs_of(const OpDesc& op) { return op.inputs[0]->shape[0] * used_experts(op); }

ProductKernel kernel_of(const OpDesc& op, const Context& context) {
  const bool selected = op.op == Op::kMatMulExperts && op.inputs[2];
  const int64_t rows = selected ? pairs_of(op) : op.inputs[0]->shape[0];
  return product_kernel(context.products, context.options.deterministic, op.inputs[1]->type, rows,
                        selected ? kVectorPairs : kVectorTokens);
}

// The scratch memory for converted activations in bytes, a multiple of 64.
size_t activation_bytes(const OpDesc& op, ProductKernel kernel) {
  const std::optional<ActivationForm> form = form_of(kernel, op.inputs[1]->type);
  return form ? (converted_bytes(*form, *op.inputs[0]) + 63) / 64 * 64 : 0;
}

bool has_shaders(const OpDesc& op, const Device& device) {
  const TensorDesc& weight = *op.inputs[1];
  return find_shader(shader_of(context_of(device), kernel_of(op, context_of(device)), weight.type)) &&
         weight.shape.last() % traits(weight.type).block_size == 0;
}

// The tokens per workgroup of matmul_vector for a bucket of `rows`. Each number needs a pipeline of its own, which a
// software renderer compiles slowly.
uint32_t vector_tokens(const Context& context, int64_t rows) {
  return rows == 1 ? 1 : rows <= 4 || context.physical.is_software() ? 4 : 8;
}

// See glsl/matmul_push.glsl.
uint32_t flags_of(const TensorRef& bias, const Operand& x, int64_t stride, int64_t k) {
  const bool aligned = x.at % 4 == 0 && stride % 4 == 0 && k % 16 == 0;
  return (bias ? 1 : 0) | (aligned ? 2 : 0);
}
constexpr uint32_t kHasIds = 4;

// Shared by both operations: the shader, its operands, and a dispatch for every range of rows of the weight.
struct Product {
  VulkanStream& stream;
  const Launch& launch;
  const TensorRef &weight, &x, &bias;
  MatMulPush push;
  Operand step, in, added, list, out;  // list: expert ids, or tiles of experts
  const Prepared& prepared;

  // The most rows of the weight in a dispatch, in whole tiles: limited by its workgroups and the work in a submission.
  int64_t most_rows(ProductKernel kernel, double tokens) const {
    const Context& context = stream.context();
    const int64_t groups = context.physical.properties.limits.maxComputeWorkGroupCount[0];
    const int64_t counted = groups * (in_tiles(kernel) ? kTile : kVectorRows);
    const double worked = std::min(context.max_work() / (2.0 * push.k * tokens), 1e12);
    return std::max(std::min(counted, static_cast<int64_t>(worked)) / kTile * kTile, int64_t{kTile});
  }

  // Each row of the weight is multiplied by `tokens` rows of x; up to `most_tokens` if experts are not selected evenly.
  template <typename Shape>
  void run(ProductKernel kernel, const std::vector<uint32_t>& constants, int64_t rows, double tokens,
           double most_tokens, const Shape& grid_of) {
    const DataType type = weight.desc->type;
    if (const std::optional<ActivationForm> form = form_of(kernel, type)) {
      const ConvertedRows converted = convert(stream, launch, x, *form);
      in = converted.operand;
      push.x_at = in.at;
      push.x_stride = converted.stride;
    }
    // If all tokens select one expert, a dispatch may take up to eight times as long as it should.
    const double bound = std::max(tokens, most_tokens / 8);
    for (const WeightRange& range : weight_ranges(stream, weight, rows, push.k, most_rows(kernel, bound))) {
      MatMulPush p = push;
      p.row_begin = range.row_begin;
      p.row_end = range.row_end;
      p.row_bytes = range.row_bytes;
      p.weight_skip = 4 * range.operand.at + range.operand.skip;
      std::vector<Operand> operands = {step, range.operand, in, added, list, out};
      add_codebook(stream, prepared, operands);
      stream.dispatch(shader_of(stream.context(), kernel, type), constants, std::move(operands), p,
                      grid_of(range.row_end - range.row_begin),
                      2.0 * (range.row_end - range.row_begin) * push.k * tokens);
    }
  }
};

bool supports_matmul(const OpDesc& op, const Device& device) { return has_shaders(op, device); }

std::unique_ptr<Prepared> prepare_matmul(const OpDesc& op, Device& device) {
  auto prepared = prepare_weight(op.inputs[1]->type, device);
  prepared->scratch_bytes = activation_bytes(op, kernel_of(op, context_of(device)));
  return prepared;
}

void matmul(const Prepared& prepared, const Launch& launch, Stream& s) {
  VulkanStream& stream = vulkan(s);
  const TensorRef &x = launch.inputs[0], &w = launch.inputs[1], &bias = launch.inputs[2], &out = launch.outputs[0];
  const Operand step = stream.step(launch), in = stream.read(x), to = stream.write(out);
  const Operand added = bias ? stream.read(bias) : step;
  const int64_t rows = x.desc->shape[0], n = w.desc->shape[0], k = w.desc->shape[1];
  const auto [count_at, fixed] = row_count(*x.desc);
  MatMulPush push = {};
  push.n = u32(n);
  push.k = u32(k);
  push.x_at = in.at;
  push.x_stride = u32(x.desc->row_stride);
  push.bias_at = added.at;
  push.out_at = to.at;
  push.count_at = count_at;
  push.fixed_rows = fixed;
  push.flags = flags_of(bias, in, x.desc->row_stride, k);
  Product product{stream, launch, w, x, bias, push, step, in, added, step, to, prepared};
  const ProductKernel kernel = kernel_of(launch.op, stream.context());
  const double tokens = static_cast<double>(rows);
  if (in_tiles(kernel)) {
    product.run(kernel, {}, n, tokens, tokens, [&](int64_t count) {
      return Grid{groups(count, kTile), groups(rows, kTile)};
    });
    return;
  }
  const uint32_t per_group = vector_tokens(stream.context(), rows), lanes = reduction_lanes(stream.context(), 8);
  product.run(kernel, {lanes, kVectorRows, per_group}, n, tokens, tokens, [&](int64_t count) {
    return Grid{groups(count, kVectorRows), groups(rows, per_group)};
  });
}

bool supports_matmul_experts(const OpDesc& op, const Device& device) {
  return has_shaders(op, device) && op.inputs[1]->shape[0] <= kMaxGroupedExperts;
}

// The most tiles that `pairs` pairs can need.
int64_t most_tiles(int64_t pairs, int64_t experts) { return pairs / kTile + std::min(pairs, experts); }

// The size of the output of moe_group.comp, which follows the activations.
size_t list_bytes(const OpDesc& op) {
  const int64_t pairs = pairs_of(op);
  return sizeof(int32_t) * static_cast<size_t>(1 + 3 * most_tiles(pairs, op.inputs[1]->shape[0]) + pairs);
}

std::unique_ptr<Prepared> prepare_matmul_experts(const OpDesc& op, Device& device) {
  auto prepared = prepare_weight(op.inputs[1]->type, device);
  const ProductKernel kernel = kernel_of(op, context_of(device));
  prepared->scratch_bytes = activation_bytes(op, kernel);
  if (in_tiles(kernel)) prepared->scratch_bytes += list_bytes(op);
  return prepared;
}

void matmul_experts(const Prepared& prepared, const Launch& launch, Stream& s) {
  VulkanStream& stream = vulkan(s);
  const TensorRef &x = launch.inputs[0], &w = launch.inputs[1], &ids = launch.inputs[2], &bias = launch.inputs[3];
  const TensorRef& out = launch.outputs[0];
  const Operand step = stream.step(launch), in = stream.read(x), to = stream.write(out);
  const Operand chosen = ids ? stream.read(ids) : step;
  const Operand added = bias ? stream.read(bias) : step;
  const int64_t experts = w.desc->shape[0], n = w.desc->shape[1], k = w.desc->shape[2];
  const int64_t used = used_experts(launch.op), pairs = pairs_of(launch.op);
  const bool per_expert = x.desc->shape.rank == 3;
  const auto [count_at, fixed] = row_count(*x.desc);
  MatMulPush push = {};
  push.n = u32(n);
  push.k = u32(k);
  push.x_at = in.at;
  push.x_stride = u32(k);
  push.x_per_expert = per_expert ? 1 : 0;
  push.bias_at = added.at;
  push.out_at = to.at;
  push.count_at = count_at;
  push.fixed_rows = fixed;
  push.used = u32(used);
  push.ids_at = chosen.at;
  push.flags = flags_of(bias, in, k, k) | (ids ? kHasIds : 0);
  Product product{stream, launch, w, x, bias, push, step, in, added, chosen, to, prepared};
  const ProductKernel kernel = kernel_of(launch.op, stream.context());
  const double tokens = static_cast<double>(pairs) / static_cast<double>(experts);
  const double most_tokens = ids ? static_cast<double>(pairs) : tokens;
  if (!in_tiles(kernel)) {
    product.run(kernel, {reduction_lanes(stream.context(), 8), kVectorRows, 1}, experts * n, tokens, most_tokens,
                [&](int64_t) {
                  return Grid{groups(n, kVectorRows), u32(used), u32(pairs / used)};
                });
    return;
  }
  const int64_t tiles = most_tiles(pairs, experts);
  const Operand list = stream.range(*launch.scratch.buffer, launch.scratch.offset + activation_bytes(launch.op, kernel),
                                    list_bytes(launch.op), true);
  const GroupPush group = {u32(experts), u32(used),     count_at, fixed,
                           chosen.at,    ids ? 1u : 0u, list.at,  list.at + u32(1 + 3 * tiles)};
  stream.dispatch("moe_group", {}, {step, chosen, list}, group, {});
  product.list = list;
  product.list.written = false;
  product.push.tiles_at = list.at;
  product.run(kernel, {}, experts * n, tokens, most_tokens, [&](int64_t) {
    return Grid{groups(n, kTile), u32(tiles)};
  });
}

}  // namespace

std::span<const OpRecord> matmul_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kMatMul, supports_matmul, prepare_matmul, matmul},
      {Op::kMatMulExperts, supports_matmul_experts, prepare_matmul_experts, matmul_experts},
  };
  return kRecords;
}

}  // namespace infer::vulkan
