#include "backends/cuda/cuda_device.h"

#include <algorithm>
#include <cstdlib>

#include "backends/cuda/cuda_ops.h"
#include "backends/cuda/gpus.h"
#include "backends/cuda/probe.h"
#include "ggml-like/bytes_text.h"
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
  DeviceImpl(const Gpu& gpu, const CudaOptions& options) : context_(gpu.number, gpu.name, gpu.properties) {
    context_.deterministic = options.deterministic;
    context_.budget = options.budget;
    if (const char* text = std::getenv("INFER_CUDA_BUDGET_MB"))
      context_.budget = std::strtoull(text, nullptr, 10) << 20;
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
  // If neither device can address the other's memory, the driver copies through host memory without a host wait.
  bool can_copy_from(const Device& other) const override { return dynamic_cast<const CudaDevice*>(&other) != nullptr; }
  std::unique_ptr<Stream> create_stream() override { return std::make_unique<CudaStream>(context_); }
  std::span<const OpRecord> operations() const override { return records(); }
  double read_bandwidth() override { return probe_read(context_); }
  // Weights of all types are multiplied as fp16 matrices.
  MachineLimits measure_limits() override {
    const double matrices = probe_matrices(context_);
    return {probe_read(context_), matrices, matrices};
  }
  Context& context() const override { return context_; }

 private:
  mutable Context context_;
};

}  // namespace
}  // namespace cuda

std::vector<std::string> cuda_device_names() {
  std::vector<std::string> names;
  for (const cuda::Gpu& gpu : cuda::find_gpus().all) {
    if (gpu.problem.empty()) names.push_back(gpu.name);
  }
  return names;
}

std::string first_cuda_gpu() {
  const std::vector<std::string> names = cuda_device_names();
  return names.empty() ? "" : names.front();
}

std::string cuda_card(const std::string& name) {
  for (const cuda::Gpu& gpu : cuda::find_gpus().all) {
    if (gpu.name == name) return hex_text(&gpu.properties.uuid, sizeof gpu.properties.uuid);
  }
  return "";
}

std::string cuda_problem(const std::string& name) {
  const cuda::Gpus& gpus = cuda::find_gpus();
  if (!gpus.problem.empty()) return concat("[", name, "] ", gpus.problem);
  for (const cuda::Gpu& gpu : gpus.all) {
    if (gpu.name == name && !gpu.problem.empty()) return concat("[", name, "] ", gpu.problem);
  }
  return "";
}

std::vector<std::string> cuda_problems() {
  const cuda::Gpus& gpus = cuda::find_gpus();
  if (gpus.none_expected) return {};
  std::vector<std::string> lines;
  if (!gpus.problem.empty()) lines.push_back(concat("[cuda] ", gpus.problem));
  for (const cuda::Gpu& gpu : gpus.all) {
    if (!gpu.problem.empty()) lines.push_back(concat("[", gpu.name, "] ", gpu.problem));
  }
  return lines;
}

std::unique_ptr<Device> create_cuda_device(const std::string& name, const CudaOptions& options) {
  const std::vector<cuda::Gpu>& all = cuda::find_gpus().all;
  const auto gpu = std::find_if(all.begin(), all.end(), [&](const cuda::Gpu& g) { return g.name == name; });
  if (gpu == all.end() || !gpu->problem.empty()) {
    throw Error(ErrorCode::kInvalidArgument, concat("[device] expected a CUDA device of this machine, found ", name));
  }
  return std::make_unique<cuda::DeviceImpl>(*gpu, options);
}

}  // namespace infer
