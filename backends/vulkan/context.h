// A logical device and its one queue. The memory, pipelines and streams that are made from it share it, and it outlives
// them. Submitting is safe from any thread.
#pragma once

#include <mutex>
#include <set>
#include <string>

#include "backends/vulkan/instance.h"
#include "backends/vulkan/kernels.h"
#include "backends/vulkan/vulkan_device.h"

namespace infer::vulkan {

// A positive integer from an environment variable, 0 if it is not set. Throws Error(kInvalidArgument).
uint64_t environment_number(const char* name);

// An object that may defer work and submit it later.
class Submitter {
 public:
  virtual ~Submitter() = default;
  virtual void flush() = 0;
};

class Context {
 public:
  Context(const PhysicalDevice& physical, const VulkanOptions& options);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const PhysicalDevice& physical;
  const VulkanOptions options;
  ProductFeatures products;  // constant once the device has been created
  DeviceFunctions f;
  VkDevice device = nullptr;

  const char* name() const { return physical.name.c_str(); }
  void check(VkResult result, const char* what) const { check_result(result, name(), what); }
  void submit(const VkSubmitInfo& info);
  // Waits until all work is done, deferred work included. Never throws: a failure is reported by the next use.
  void settle();
  void add(Submitter* submitter) { submitters_.insert(submitter); }
  void remove(Submitter* submitter) { submitters_.erase(submitter); }
  // The most bytes of a buffer that one binding can cover, and the alignment of its start.
  uint64_t max_binding() const;
  uint64_t binding_alignment() const { return physical.properties.limits.minStorageBufferOffsetAlignment; }
  uint32_t max_shared() const { return most_shared(physical, options); }
  // The most multiplications and additions in one submission: drivers abort work that runs for seconds (2 on Windows,
  // and for AMD on recent Linux), and the display waits for it. A dispatch that would exceed it is split.
  double max_work() const { return max_work_; }
  bool subgroups() const { return uses_subgroups(physical, options); }
  // The subgroup size that reductions rely on.
  uint32_t subgroup_size() const {
    const uint32_t asked = reduction_subgroup(physical, options);
    return asked ? asked : physical.subgroup_size;
  }

 private:
  void wait();

  VkQueue queue_ = nullptr;
  double max_work_ = 0;
  bool submitted_ = false;
  std::mutex queue_mutex_;
  std::set<Submitter*> submitters_;
};

}  // namespace infer::vulkan
