#include "backends/vulkan/vulkan_device.h"

#include <algorithm>
#include <chrono>

#include <vector>

#include "backends/vulkan/codebooks.h"
#include "backends/vulkan/vulkan_ops.h"
#include "ggml-like/error.h"

namespace infer {
namespace vulkan {
namespace {

const std::vector<OpRecord>& records(bool with_states) {
  static const std::vector<OpRecord> kStateless =
      all_records({attention_ops(), columns_ops(), elementwise_ops(), matmul_ops(), moe_ops(), norm_ops(), rope_ops(),
                   rows_ops(), sparse_attention_ops(), streams_ops()});
  static const std::vector<OpRecord> kAll = all_records({kStateless, recurrent_ops()});
  return with_states ? kAll : kStateless;
}

class DeviceImpl final : public VulkanDevice {
 public:
  DeviceImpl(const PhysicalDevice& physical, const VulkanOptions& options)
      : context_(physical, options), memory_(context_), pipelines_(context_), codebooks_(memory_, pipelines_) {
    ProductFeatures& products = context_.products;
    if ((products.matrices || products.emulated_matrices) && !options.deterministic && !matrices_are_right(*this)) {
      if (products.asked_for) {
        throw Error(ErrorCode::kIo, concat("[INFER_VULKAN_KERNELS] expected correct fp16 matrices, found ",
                                           physical.name, " (", physical.model, ")"));
      }
      products.matrices = products.emulated_matrices = false;
      products.wrong_matrices = true;
    }
  }

  std::string name() const override { return context_.name(); }
  std::string description() const override {
    const PhysicalDevice& p = context_.physical;
    std::string text = concat(p.model, ", ", p.driver, ", subgroups of ", context_.subgroup_size());
    if (!context_.subgroups()) text += " (not used)";
    if (context_.products.dot) text += ", int8 dot products";
    if (context_.products.matrices) text += ", fp16 matrices";
    if (context_.products.wrong_matrices) text += ", faulty fp16 matrices (not used)";
    if (memory_.unified()) text += ", unified memory";
    return text;
  }
  DeviceMemory memory() const override { return memory_.state(); }
  bool is_host() const override { return false; }
  std::unique_ptr<Buffer> allocate(size_t bytes) override { return std::make_unique<VulkanBuffer>(memory_, bytes); }
  std::unique_ptr<Buffer> allocate_staging(size_t bytes) override {
    return std::make_unique<VulkanBuffer>(memory_, bytes, true);
  }
  std::unique_ptr<Stream> create_stream() override { return std::make_unique<VulkanStream>(memory_, pipelines_); }
  std::span<const OpRecord> operations() const override { return records(can_bind_states(context_.physical)); }
  size_t cache_block_bytes(const CacheDesc& cache) const override {
    const size_t bytes = vulkan::cache_block_bytes(cache);
    return bytes > 0 ? bytes : Device::cache_block_bytes(cache);  // for a type that is refused later
  }
  double read_bandwidth() override;
  Context& context() const override { return context_; }
  Memory& memory_of_device() const override { return memory_; }
  const Buffer* codebook(DataType type) override { return codebooks_.get(type); }

 private:
  mutable Context context_;
  mutable Memory memory_;
  Pipelines pipelines_;
  Codebooks codebooks_;
};

// The best of five passes over up to 256 MiB; unknown if a model has left too little memory.
double DeviceImpl::read_bandwidth() try {
  const uint64_t most = std::min({uint64_t{256} << 20, context_.max_binding(), memory_.max_piece(), memory().free / 4});
  const uint64_t bytes = most / 4096 * 4096;
  if (bytes == 0) return 0;
  const std::unique_ptr<Buffer> data = allocate(bytes), sum = allocate(4);
  VulkanStream stream(memory_, pipelines_);
  double best = 0;
  for (int pass = 0; pass < 5; ++pass) {
    const double seconds = stream.time([&] {
      stream.dispatch("probe_read", {}, {stream.range(*data, 0, bytes, false), stream.range(*sum, 0, 4, true)},
                      static_cast<uint32_t>(bytes / 16),
                      {static_cast<uint32_t>(std::min<uint64_t>(4096, bytes / 4096))});
    });
    best = std::max(best, static_cast<double>(bytes) / seconds);
  }
  return best;
} catch (const Error& error) {
  if (error.code() != ErrorCode::kOutOfMemory) throw;
  return 0;
}

}  // namespace
}  // namespace vulkan

std::vector<std::string> vulkan_device_names() {
  std::vector<std::string> names;
  for (const vulkan::PhysicalDevice& device : vulkan::instance().devices) names.push_back(device.name);
  return names;
}

std::string first_vulkan_gpu() {
  const auto& devices = vulkan::instance().devices;
  return devices.empty() || devices[0].is_software() ? "" : devices[0].name;
}

std::string vulkan_card(const std::string& name) {
  for (const vulkan::PhysicalDevice& device : vulkan::instance().devices) {
    if (device.name == name) return device.card;
  }
  return "";
}

std::unique_ptr<Device> create_vulkan_device(const std::string& name, const VulkanOptions& options) {
  for (const vulkan::PhysicalDevice& device : vulkan::instance().devices) {
    if (device.name == name) return std::make_unique<vulkan::DeviceImpl>(device, options);
  }
  throw Error(ErrorCode::kInvalidArgument, concat("[device] expected a Vulkan device of this machine, found ", name));
}

}  // namespace infer
