#include "backends/vulkan/recording.h"

#include <algorithm>

namespace infer::vulkan {
namespace {

constexpr int kDispatchesPerSubmission = 512;

}  // namespace

void full_barrier(const DeviceFunctions& f, VkCommandBuffer commands) {
  constexpr VkPipelineStageFlags kStages =
      VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_HOST_BIT;
  VkMemoryBarrier barrier = {};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_HOST_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
                          VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_HOST_READ_BIT;
  f.CmdPipelineBarrier(commands, kStages, kStages, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

bool Hazards::conflicts(const Operand& o) const {
  return std::any_of(ranges_.begin(), ranges_.end(), [&](const Range& r) {
    return r.buffer == o.handle && (r.written || o.written) && o.offset < r.end && r.begin < o.offset + o.range;
  });
}

bool Hazards::touch(std::span<const Operand> operands) {
  const bool conflict = std::any_of(operands.begin(), operands.end(), [&](const Operand& o) { return conflicts(o); });
  if (conflict) clear();
  for (const Operand& o : operands) ranges_.push_back({o.handle, o.offset, o.offset + o.range, o.written});
  return conflict;
}

bool Hazards::touch(const Operand& operand) { return touch(std::span(&operand, 1)); }

Recording::Recording(Context& context, VkCommandPool pool, std::span<const Dispatch> dispatches)
    : context_(context), pool_(pool) {
  const DeviceFunctions& f = context_.f;
  std::vector<VkDescriptorSet> sets;
  try {
    allocate_sets(dispatches, sets);
    Hazards hazards;
    double work = 0;
    int count = 0;
    begin();
    for (size_t i = 0; i < dispatches.size(); ++i) {
      const Dispatch& d = dispatches[i];
      if (count > 0 && (work + d.work > context.max_work() || count == kDispatchesPerSubmission)) {
        end();
        begin();
        hazards.clear();
        work = count = 0;
      }
      if (hazards.touch(d.operands)) full_barrier(f, commands_.back());
      f.CmdBindPipeline(commands_.back(), VK_PIPELINE_BIND_POINT_COMPUTE, d.pipeline->handle);
      f.CmdBindDescriptorSets(commands_.back(), VK_PIPELINE_BIND_POINT_COMPUTE, d.pipeline->layout, 0, 1, &sets[i], 0,
                              nullptr);
      if (d.push_bytes > 0) {
        f.CmdPushConstants(commands_.back(), d.pipeline->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, d.push_bytes,
                           d.push.data());
      }
      f.CmdDispatch(commands_.back(), d.grid.x, d.grid.y, d.grid.z);
      work += d.work;
      ++count;
    }
    end();
  } catch (...) {
    release();
    throw;
  }
}

Recording::~Recording() { release(); }

void Recording::release() {
  const DeviceFunctions& f = context_.f;
  if (!commands_.empty()) {
    f.FreeCommandBuffers(context_.device, pool_, static_cast<uint32_t>(commands_.size()), commands_.data());
  }
  if (descriptors_) f.DestroyDescriptorPool(context_.device, descriptors_, nullptr);
}

// One set per dispatch, from a pool of exactly that size.
void Recording::allocate_sets(std::span<const Dispatch> dispatches, std::vector<VkDescriptorSet>& sets) {
  if (dispatches.empty()) return;
  const DeviceFunctions& f = context_.f;
  std::vector<VkDescriptorSetLayout> layouts;
  std::vector<VkDescriptorBufferInfo> buffers;
  for (const Dispatch& d : dispatches) {
    layouts.push_back(d.pipeline->set_layout);
    for (const Operand& o : d.operands) buffers.push_back({o.handle, o.offset, o.range});
  }
  const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, static_cast<uint32_t>(buffers.size())};
  VkDescriptorPoolCreateInfo pool = {};
  pool.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  pool.maxSets = static_cast<uint32_t>(dispatches.size());
  pool.poolSizeCount = 1;
  pool.pPoolSizes = &size;
  context_.check(f.CreateDescriptorPool(context_.device, &pool, nullptr, &descriptors_), "vkCreateDescriptorPool");
  sets.resize(dispatches.size());
  VkDescriptorSetAllocateInfo allocation = {};
  allocation.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  allocation.descriptorPool = descriptors_;
  allocation.descriptorSetCount = static_cast<uint32_t>(sets.size());
  allocation.pSetLayouts = layouts.data();
  context_.check(f.AllocateDescriptorSets(context_.device, &allocation, sets.data()), "vkAllocateDescriptorSets");
  std::vector<VkWriteDescriptorSet> writes;
  size_t next = 0;
  for (size_t i = 0; i < dispatches.size(); ++i) {
    VkWriteDescriptorSet write = {};
    write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    write.dstSet = sets[i];
    write.descriptorCount = static_cast<uint32_t>(dispatches[i].operands.size());
    write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    write.pBufferInfo = buffers.data() + next;
    next += dispatches[i].operands.size();
    writes.push_back(write);
  }
  f.UpdateDescriptorSets(context_.device, static_cast<uint32_t>(writes.size()), writes.data(), 0, nullptr);
}

void Recording::begin() {
  const DeviceFunctions& f = context_.f;
  VkCommandBufferAllocateInfo allocation = {};
  allocation.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  allocation.commandPool = pool_;
  allocation.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  allocation.commandBufferCount = 1;
  VkCommandBuffer commands = nullptr;
  context_.check(f.AllocateCommandBuffers(context_.device, &allocation, &commands), "vkAllocateCommandBuffers");
  commands_.push_back(commands);
  VkCommandBufferBeginInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  info.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;  // the next step may be queued before this one is done
  context_.check(f.BeginCommandBuffer(commands, &info), "vkBeginCommandBuffer");
  full_barrier(f, commands);
}

void Recording::end() {
  full_barrier(context_.f, commands_.back());
  context_.check(context_.f.EndCommandBuffer(commands_.back()), "vkEndCommandBuffer");
}

}  // namespace infer::vulkan
