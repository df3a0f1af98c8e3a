#include "backends/blas/blas_device.h"

#include <utility>
#include <vector>

#include "backends/blas/blas_ops.h"
#include "ggml-like/error.h"

namespace infer {
namespace blas {
namespace {

bool wrapped_supports(const OpDesc& op, const Device& device) {
  return static_cast<const BlasDevice&>(device).wrapped().supports(op);
}

std::unique_ptr<Prepared> prepare(const OpDesc& op, Device& device) {
  auto node = std::make_unique<WrappedNode>();
  prepare_wrapped(op, static_cast<BlasDevice&>(device), *node);
  return node;
}

class DeviceImpl final : public BlasDevice {
 public:
  DeviceImpl(std::unique_ptr<Device> wrapped, const BlasOptions& options)
      : wrapped_(std::move(wrapped)), options_(options), library_(open_openblas()) {
    for (const OpRecord& record : wrapped_->operations()) {
      if (record.op == Op::kMatMul)
        records_.push_back({record.op, wrapped_supports, prepare_matmul, launch_on_host<matmul>});
      else records_.push_back({record.op, wrapped_supports, prepare, launch_on_host<launch_wrapped>});
    }
  }
  std::string name() const override { return wrapped_->name(); }
  std::string description() const override { return concat(wrapped_->description(), ", ", library_.description); }
  DeviceMemory memory() const override { return wrapped_->memory(); }
  bool is_host() const override { return true; }
  std::unique_ptr<Buffer> allocate(size_t bytes) override { return wrapped_->allocate(bytes); }
  std::unique_ptr<Buffer> allocate_staging(size_t bytes) override { return wrapped_->allocate_staging(bytes); }
  std::unique_ptr<Stream> create_stream() override { return wrapped_->create_stream(); }
  std::span<const OpRecord> operations() const override { return records_; }
  size_t cache_block_bytes(const CacheDesc& cache) const override { return wrapped_->cache_block_bytes(cache); }
  DataType default_cache_type() const override { return wrapped_->default_cache_type(); }
  double read_bandwidth() override { return wrapped_->read_bandwidth(); }
  MachineLimits measure_limits() override { return wrapped_->measure_limits(); }

  Device& wrapped() const override { return *wrapped_; }
  const OpenBlas& library() const override { return library_; }
  const BlasOptions& options() const override { return options_; }

 private:
  const std::unique_ptr<Device> wrapped_;
  const BlasOptions options_;
  const OpenBlas& library_;
  std::vector<OpRecord> records_;
};

}  // namespace

void prepare_wrapped(const OpDesc& op, const BlasDevice& device, WrappedNode& node) {
  node.record = device.wrapped().find(op.op);
  node.prepared = node.record->prepare(op, device.wrapped());
  node.scratch_bytes = node.prepared->scratch_bytes;
}

void launch_wrapped(const Prepared& node, const HostLaunch& launch, Stream& stream) {
  const auto& wrapped = static_cast<const WrappedNode&>(node);
  wrapped.record->launch(*wrapped.prepared, launch, stream);
}

}  // namespace blas

std::unique_ptr<Device> create_blas_device(std::unique_ptr<Device> wrapped, const BlasOptions& options) {
  CHECK_INTERNAL(wrapped->is_host());
  return std::make_unique<blas::DeviceImpl>(std::move(wrapped), options);
}

std::string openblas_description() {
  try {
    return blas::open_openblas().description;
  } catch (const Error&) {
    return "";
  }
}

}  // namespace infer
