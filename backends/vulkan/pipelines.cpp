#include "backends/vulkan/pipelines.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "backends/vulkan/shaders.h"
#include "backends/vulkan/spirv.h"
#include "ggml-like/error.h"

namespace infer::vulkan {
namespace {

// The file is this header and the driver's data, which drivers trust: hence the length and a checksum.
struct CacheHeader {
  char mark[8] = {'i', 'n', 'f', 'e', 'r', 'V', 'K', '1'};
  uint64_t bytes = 0, sum = 0;
};

// FNV-1a.
uint64_t sum_of(const std::vector<char>& data) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : data) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return hash;
}

constexpr uint64_t kLargestCache = 256 << 20;  // bytes; a larger file was not written by this program

std::vector<char> read_cache_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  CacheHeader header, expected;
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header)) return {};
  if (std::memcmp(header.mark, expected.mark, sizeof header.mark) != 0 || header.bytes > kLargestCache) return {};
  std::vector<char> data(header.bytes);
  if (!file.read(data.data(), static_cast<std::streamsize>(data.size())) || sum_of(data) != header.sum) return {};
  return data;
}

// The subgroup size that the shader must require, or 0.
uint32_t subgroup_of(const Shader& shader, const Context& context) {
  if (has_capability(shader.code, kCooperativeMatrixNV)) return matrix_subgroup(context.physical);
  return has_capability(shader.code, kGroupNonUniform) ? reduction_subgroup(context.physical, context.options) : 0;
}

}  // namespace

bool is_cache_of(const std::vector<char>& data, const PhysicalDevice& device) {
  VkPipelineCacheHeaderVersionOne header = {};
  if (data.size() < sizeof header) return false;
  std::memcpy(&header, data.data(), sizeof header);
  return header.headerSize >= sizeof header && header.headerVersion == VK_PIPELINE_CACHE_HEADER_VERSION_ONE &&
         header.vendorID == device.properties.vendorID && header.deviceID == device.properties.deviceID &&
         std::equal(device.cache_uuid.begin(), device.cache_uuid.end(), header.pipelineCacheUUID);
}

Pipelines::Pipelines(Context& context) : context_(context) { read_cache(); }

Pipelines::~Pipelines() {
  if (changed_) write_cache();
  const DeviceFunctions& f = context_.f;
  for (const auto& [key, pipeline] : pipelines_) f.DestroyPipeline(context_.device, pipeline.handle, nullptr);
  for (const auto& [n, layout] : layouts_) {
    f.DestroyPipelineLayout(context_.device, layout.pipeline, nullptr);
    f.DestroyDescriptorSetLayout(context_.device, layout.set, nullptr);
  }
  if (cache_) f.DestroyPipelineCache(context_.device, cache_, nullptr);
}

// "" if there is no folder for it.
std::string Pipelines::cache_file() const {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  std::string folder = cache && *cache == '/' ? cache : "";
  if (folder.empty() && home && *home) folder = std::string(home) + "/.cache";
  if (folder.empty()) return "";
  std::string id;
  for (const uint8_t byte : context_.physical.cache_uuid) {
    constexpr char kHex[] = "0123456789abcdef";
    id += {kHex[byte >> 4], kHex[byte & 15]};
  }
  return concat(folder, "/infer/vulkan-", context_.physical.properties.vendorID, "-",
                context_.physical.properties.deviceID, "-", id, ".bin");
}

void Pipelines::read_cache() {
  const std::string path = cache_file();
  std::vector<char> data;
  if (!path.empty()) data = read_cache_file(path);
  if (!is_cache_of(data, context_.physical)) data.clear();
  read_bytes_ = data.size();
  VkPipelineCacheCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  info.initialDataSize = data.size();
  info.pInitialData = data.data();
  if (context_.f.CreatePipelineCache(context_.device, &info, nullptr, &cache_) == VK_SUCCESS) return;
  info.initialDataSize = 0;
  context_.check(context_.f.CreatePipelineCache(context_.device, &info, nullptr, &cache_), "vkCreatePipelineCache");
}

// Best effort: without the file, shaders are compiled again.
void Pipelines::write_cache() const {
  const std::string path = cache_file();
  if (path.empty() || !cache_) return;
  size_t bytes = 0;
  if (context_.f.GetPipelineCacheData(context_.device, cache_, &bytes, nullptr) != VK_SUCCESS) return;
  if (bytes == read_bytes_) return;
  std::vector<char> data(bytes);
  if (context_.f.GetPipelineCacheData(context_.device, cache_, &bytes, data.data()) != VK_SUCCESS) return;
  data.resize(bytes);
  CacheHeader header;
  header.bytes = data.size();
  header.sum = sum_of(data);
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  const std::string beside = concat(path, ".", getpid());
  {
    std::ofstream file(beside, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&header), sizeof header);
    file.write(data.data(), static_cast<std::streamsize>(data.size()));
    if (!file.flush()) {
      std::filesystem::remove(beside, ignored);
      return;
    }
  }
  std::filesystem::rename(beside, path, ignored);
}

const Pipelines::Layout& Pipelines::layout(int n_bindings) {
  Layout& made = layouts_[n_bindings];
  if (made.pipeline) return made;
  const DeviceFunctions& f = context_.f;
  std::vector<VkDescriptorSetLayoutBinding> bindings(static_cast<size_t>(n_bindings));
  for (int i = 0; i < n_bindings; ++i) {
    bindings[i] = {static_cast<uint32_t>(i), VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT,
                   nullptr};
  }
  VkDescriptorSetLayoutCreateInfo set = {};
  set.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  set.bindingCount = static_cast<uint32_t>(n_bindings);
  set.pBindings = bindings.data();
  if (!made.set) {
    context_.check(f.CreateDescriptorSetLayout(context_.device, &set, nullptr, &made.set),
                   "vkCreateDescriptorSetLayout");
  }
  const VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes};
  VkPipelineLayoutCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  info.setLayoutCount = 1;
  info.pSetLayouts = &made.set;
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &push;
  context_.check(f.CreatePipelineLayout(context_.device, &info, nullptr, &made.pipeline), "vkCreatePipelineLayout");
  return made;
}

const Pipeline& Pipelines::get(const std::string& name, const std::vector<uint32_t>& constants, int n_bindings) {
  const auto found = pipelines_.find({name, constants});
  if (found != pipelines_.end()) return found->second;
  const Shader* shader = find_shader(name);
  CHECK_INTERNAL(shader && n_bindings <= kMaxBindings);
  const Layout& form = layout(n_bindings);
  const DeviceFunctions& f = context_.f;

  VkShaderModuleCreateInfo module_info = {};
  module_info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  const bool keeps_inf_nan = context_.physical.keeps_inf_nan && context_.options.keeps_inf_nan;
  const std::vector<uint32_t> reduced =
      keeps_inf_nan ? std::vector<uint32_t>{} : without_inf_nan_preserve(shader->code);
  const std::span<const uint32_t> code = keeps_inf_nan ? shader->code : std::span<const uint32_t>(reduced);
  module_info.codeSize = code.size_bytes();
  module_info.pCode = code.data();
  VkShaderModule module = nullptr;
  context_.check(f.CreateShaderModule(context_.device, &module_info, nullptr, &module), "vkCreateShaderModule");

  std::vector<VkSpecializationMapEntry> entries;
  for (uint32_t i = 0; i < constants.size(); ++i) entries.push_back({i, 4 * i, 4});
  const VkSpecializationInfo special = {static_cast<uint32_t>(entries.size()), entries.data(), 4 * constants.size(),
                                        constants.data()};
  VkComputePipelineCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &special;
  info.layout = form.pipeline;
  Pipeline made{nullptr, form.pipeline, form.set, n_bindings, subgroup_of(*shader, context_)};
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size = {};
  size.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO;
  size.requiredSubgroupSize = made.subgroup_size;
  if (made.subgroup_size != 0) {
    info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    info.stage.pNext = &size;
  }
  const VkResult result = f.CreateComputePipelines(context_.device, cache_, 1, &info, nullptr, &made.handle);
  f.DestroyShaderModule(context_.device, module, nullptr);
  context_.check(result, concat("vkCreateComputePipelines for the shader ", name).c_str());
  changed_ = true;
  return pipelines_.emplace(std::pair{name, constants}, made).first->second;
}

}  // namespace infer::vulkan
