#include "ggml-like/ref/ref_device.h"

#include <vector>

#include "ggml-like/ref/ref_ops.h"

namespace infer {
namespace ref {

bool supports_all(const OpDesc& op, const Device&) {
  for (const TensorDesc* d : op.inputs) {
    if (d && d->type != DataType::kI32 && !traits(d->type).to_float) return false;
  }
  if (!op.cache) return true;
  return traits(op.cache->key_type).to_float && traits(op.cache->value_type).to_float &&
         op.cache->key_dim % traits(op.cache->key_type).block_size == 0 &&
         op.cache->stored_value_dim() % traits(op.cache->value_type).block_size == 0;
}

std::unique_ptr<Prepared> nothing_to_prepare(const OpDesc&, Device&) { return std::make_unique<Prepared>(); }

}  // namespace ref
namespace {

const std::vector<OpRecord>& records() {
  using namespace ref;
  static const std::vector<OpRecord> kRecords =
      all_records({attention_ops(), columns_ops(), elementwise_ops(), matmul_ops(), moe_ops(), norm_ops(),
                   recurrent_ops(), rope_ops(), rows_ops(), sparse_attention_ops(), streams_ops()});
  return kRecords;
}

class RefDevice final : public Device {
 public:
  std::string name() const override { return "ref"; }
  std::string description() const override { return "reference operations in scalar code"; }
  DeviceMemory memory() const override { return host_memory(); }
  bool is_host() const override { return true; }
  std::unique_ptr<Buffer> allocate(size_t bytes) override { return allocate_host(bytes); }
  std::unique_ptr<Buffer> allocate_staging(size_t bytes) override { return allocate_host(bytes); }
  std::unique_ptr<Stream> create_stream() override { return std::make_unique<HostStream>(); }
  std::span<const OpRecord> operations() const override { return records(); }
  DataType default_cache_type() const override { return DataType::kF32; }
};

}  // namespace

std::unique_ptr<Device> create_ref_device() { return std::make_unique<RefDevice>(); }

}  // namespace infer
