#include "backends/cuda/cuda_device.h"

#include <cstdlib>

#include "backends/cuda/cuda_ops.h"
#include "ggml-like/error.h"

namespace infer {
namespace cuda {
namespace {

std::span<const OpRecord> records() {
  static const std::vector<OpRecord> kRecords = all_records(
      {attention_ops(), columns_ops(), delta_rule_ops(), elementwise_ops(), kv_store_ops(), matmul_ops(), moe_ops(),
       norm_ops(), recurrent_ops(), rope_ops(), rows_ops(), sparse_attention_ops(), streams_ops(), top_k_ops()});
  return kRecords;
}

class DeviceImpl final : public CudaDevice {
 public:
  DeviceImpl(int number, const CudaOptions& options) {
    context_.number = number;
    context_.name = concat("cuda", number);
    context_.deterministic = options.deterministic;
    context_.budget = options.budget;
    if (const char* text = std::getenv("INFER_CUDA_BUDGET_MB"))
      context_.budget = std::strtoull(text, nullptr, 10) << 20;
    context_.check(cudaGetDeviceProperties(&context_.properties, number), "cudaGetDeviceProperties");
  }

  std::string name() const override { return context_.name; }
  std::string description() const override {
    const cudaDeviceProp& p = context_.properties;
    return concat(p.name, ", compute capability ", p.major, ".", p.minor, ", ", p.multiProcessorCount,
                  " multiprocessors");
  }
  DeviceMemory memory() const override { return memory_state(context_); }
  bool is_host() const override { return false; }
  std::unique_ptr<Buffer> allocate(size_t bytes) override {
    return std::make_unique<CudaBuffer>(context_, bytes, CudaBuffer::Kind::kDevice);
  }
  std::unique_ptr<Buffer> allocate_staging(size_t bytes) override {
    return std::make_unique<CudaBuffer>(context_, bytes, CudaBuffer::Kind::kPinned);
  }
  std::unique_ptr<Stream> create_stream() override { return std::make_unique<CudaStream>(context_); }
  std::span<const OpRecord> operations() const override { return records(); }
  Context& context() const override { return context_; }

 private:
  mutable Context context_;
};

}  // namespace
}  // namespace cuda

std::vector<std::string> cuda_device_names() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();
    return {};
  }
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(concat("cuda", i));
  return names;
}

std::unique_ptr<Device> create_cuda_device(const std::string& name, const CudaOptions& options) {
  const std::vector<std::string> names = cuda_device_names();
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return std::make_unique<cuda::DeviceImpl>(static_cast<int>(i), options);
  }
  throw Error(ErrorCode::kInvalidArgument, concat("[device] expected a CUDA device of this machine, found ", name));
}

}  // namespace infer
