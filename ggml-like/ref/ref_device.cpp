#include "ggml-like/ref/ref_device.h"

#include <array>
#include <cstring>

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

constexpr OpRecord record(Op op, void (*launch)(const Prepared&, const Launch&, Stream&)) {
  return {op, supports_all, nothing_to_prepare, launch};
}

constexpr std::array kRecords = {
    record(Op::kEmbed, ref::embed),
    record(Op::kSelectRows, ref::select_rows),
    record(Op::kMatMul, ref::matmul),
    record(Op::kMatMulExperts, ref::matmul_experts),
    record(Op::kRmsNorm, ref::rms_norm),
    record(Op::kLayerNorm, ref::layer_norm),
    record(Op::kAdd, ref::add),
    record(Op::kMul, ref::mul),
    record(Op::kScale, ref::scale),
    record(Op::kUnary, ref::unary),
    record(Op::kGatedActivation, ref::gated_activation),
    record(Op::kRopeTable, ref::rope_table),
    record(Op::kRope, ref::rope),
    record(Op::kKvStore, ref::kv_store),
    record(Op::kPagedAttention, ref::paged_attention),
    record(Op::kMoeRoute, ref::moe_route),
    record(Op::kMoeCombine, ref::moe_combine),
    record(Op::kTopK, ref::top_k),
};

class RefStream final : public Stream {
 public:
  void upload(Buffer& to, size_t offset, const void* from, size_t bytes) override {
    std::memcpy(to.host() + offset, from, bytes);
  }
  void download(void* to, const Buffer& from, size_t offset, size_t bytes) override {
    std::memcpy(to, from.host() + offset, bytes);
  }
  std::unique_ptr<Event> record() override { return std::make_unique<Event>(); }
  void wait(const Event&) override {}
  void synchronize() override {}
};

class RefDevice final : public Device {
 public:
  std::string name() const override { return "ref"; }
  std::string description() const override { return "reference operations in scalar code"; }
  DeviceMemory memory() const override { return host_memory(); }
  bool is_host() const override { return true; }
  std::unique_ptr<Buffer> allocate(size_t bytes) override { return allocate_host(bytes); }
  std::unique_ptr<Stream> create_stream() override { return std::make_unique<RefStream>(); }
  std::span<const OpRecord> operations() const override { return kRecords; }
  DataType default_cache_type() const override { return DataType::kF32; }
};

}  // namespace

std::unique_ptr<Device> create_ref_device() { return std::make_unique<RefDevice>(); }

}  // namespace infer
