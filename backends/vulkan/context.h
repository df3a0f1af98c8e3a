// A logical device with its one queue, shared by the memory, the pipelines and the streams that are made from it and
// that it outlives. Submitting is safe from any thread.
#pragma once

#include <mutex>
#include <set>
#include <string>

#include "backends/vulkan/instance.h"
#include "backends/vulkan/kernels.h"
#include "backends/vulkan/vulkan_device.h"

namespace infer::vulkan {

// A positive whole number from the environment, 0 where the variable is not set. Throws Error(kInvalidArgument).
uint64_t environment_number(const char* name);

// Whoever holds work back that was not submitted yet.
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
  ProductFeatures products;  // constant once the device is made
  DeviceFunctions f;
  VkDevice device = nullptr;

  const char* name() const { return physical.name.c_str(); }
  void check(VkResult result, const char* what) const { check_result(result, name(), what); }
  void submit(const VkSubmitInfo& info);
  // Waits until all work is done, that which is held back included. Never throws: what went wrong shows at the next
  // use.
  void settle();
  void add(Submitter* submitter) { submitters_.insert(submitter); }
  void remove(Submitter* submitter) { submitters_.erase(submitter); }
  // Bytes of a buffer that one binding reaches, and the alignment of its start.
  uint64_t max_binding() const;
  uint64_t binding_alignment() const { return physical.properties.limits.minStorageBufferOffsetAlignment; }
  uint32_t max_shared() const { return most_shared(physical, options); }
  // Multiplications and additions in one submission, at most: drivers end what runs for seconds (2 on Windows and on
  // recent Linux for AMD), and a screen waits for it. A single dispatch is cut where it would be more.
  double max_work() const { return max_work_; }
  bool subgroups() const { return uses_subgroups(physical, options); }
  // Lanes of the subgroups that reductions count on.
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
