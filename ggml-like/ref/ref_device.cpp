#include "ggml-like/ref/ref_device.h"

#include <array>

#include "ggml-like/ref/ref_ops.h"

namespace infer {
namespace {

bool supports_all(const OpDesc& op, const Device&) {
  for (const TensorDesc* d : op.inputs) {
    if (d && d->type != DataType::kI32 && !traits(d->type).to_float) return false;
  }
  if (!op.cache) return true;
  return traits(op.cache->key_type).to_float && traits(op.cache->value_type).to_float &&
         op.cache->key_dim % traits(op.cache->key_type).block_size == 0 &&
         op.cache->value_dim % traits(op.cache->value_type).block_size == 0;
}

std::unique_ptr<Prepared> nothing_to_prepare(const OpDesc&, Device&) { return std::make_unique<Prepared>(); }

template <void (*kKernel)(const Prepared&, const HostLaunch&, Stream&)>
constexpr OpRecord record(Op op) {
  return {op, supports_all, nothing_to_prepare, launch_on_host<kKernel>};
}

constexpr std::array kRecords = {
    record<ref::embed>(Op::kEmbed),
    record<ref::select_rows>(Op::kSelectRows),
    record<ref::matmul>(Op::kMatMul),
    record<ref::matmul_experts>(Op::kMatMulExperts),
    record<ref::rms_norm>(Op::kRmsNorm),
    record<ref::layer_norm>(Op::kLayerNorm),
    record<ref::add>(Op::kAdd),
    record<ref::mul>(Op::kMul),
    record<ref::scale>(Op::kScale),
    record<ref::unary>(Op::kUnary),
    record<ref::gated_activation>(Op::kGatedActivation),
    record<ref::rope_table>(Op::kRopeTable),
    record<ref::rope>(Op::kRope),
    record<ref::kv_store>(Op::kKvStore),
    record<ref::paged_attention>(Op::kPagedAttention),
    record<ref::moe_route>(Op::kMoeRoute),
    record<ref::moe_combine>(Op::kMoeCombine),
    record<ref::top_k>(Op::kTopK),
};

class RefDevice final : public Device {
 public:
  std::string name() const override { return "ref"; }
  std::string description() const override { return "reference operations in scalar code"; }
  DeviceMemory memory() const override { return host_memory(); }
  bool is_host() const override { return true; }
  std::unique_ptr<Buffer> allocate(size_t bytes) override { return allocate_host(bytes); }
  std::unique_ptr<Buffer> allocate_staging(size_t bytes) override { return allocate_host(bytes); }
  std::unique_ptr<Stream> create_stream() override { return std::make_unique<HostStream>(); }
  std::span<const OpRecord> operations() const override { return kRecords; }
  DataType default_cache_type() const override { return DataType::kF32; }
};

}  // namespace

std::unique_ptr<Device> create_ref_device() { return std::make_unique<RefDevice>(); }

}  // namespace infer
