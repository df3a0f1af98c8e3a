// The memory of a run on its devices: weights, KV cache and step inputs. One thread.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "ggml-like/error.h"
#include "src/engine/memory_use.h"

namespace infer {

// Error(kOutOfMemory) that names the device. Offloading fewer layers helps unless it is the host.
class DeviceMemoryError final : public Error {
 public:
  DeviceMemoryError(const Device& device, const std::string& message)
      : Error(ErrorCode::kOutOfMemory, message), on_host_(device.is_host()) {}
  bool on_host() const { return on_host_; }

 private:
  bool on_host_;
};

// Allocate device memory, and staging memory for the device. Both throw DeviceMemoryError.
std::unique_ptr<Buffer> allocate_on(Device& device, size_t bytes);
std::unique_ptr<Buffer> allocate_staging_on(Device& device, size_t bytes);

class ModelMemory final : public TensorMemory {
 public:
  // `placed` and `streams`, one per device, outlive this.
  ModelMemory(const PlacedModel& placed, std::span<const std::unique_ptr<Stream>> streams);

  // Allocates memory for all weights that `largest` reads, for the cache and for step inputs. Throws DeviceMemoryError
  // before the first weight is copied, so failing is cheap.
  void allocate(const Plan& largest, std::span<const DeviceUse> uses);
  // Copies weights into the memory from allocate(); complete on return. `progress` may be null.
  void upload_weights(const LoadingProgress& progress = nullptr);

  // If a device supports a node in one size only, a plan for another bucket may place it where the largest plan did
  // not; a weight missing there is allocated and uploaded now.
  BufferPlace weight(const Weight& weight, int device) override;
  CacheRef cache(const CacheDesc& desc) const override;
  // The step inputs, one buffer per device with its own memory; null for host devices.
  std::vector<Buffer*> step_buffers(const Plan& plan);

  // Copies a whole KV block or slot in every layer of a cache group, on the device and without waiting: work queued
  // later sees the copy. Each group has its own block ids.
  void copy_block(int group, int32_t from, int32_t to);

 private:
  Device& device(int index) const { return *placed_.devices()[static_cast<size_t>(index)]; }
  Stream& stream(int index) const { return *streams_[static_cast<size_t>(index)]; }
  int n_devices() const { return static_cast<int>(placed_.devices().size()); }

  // A layer has at most one cache of each use in a group.
  using CacheKey = std::tuple<int, int, CacheUse>;  // layer, group, use
  static CacheKey key_of(const CacheDesc& desc) { return {desc.layer, desc.group, desc.use}; }

  const PlacedModel& placed_;
  const std::span<const std::unique_ptr<Stream>> streams_;
  std::map<std::pair<int, const void*>, std::unique_ptr<Buffer>> weights_;  // by device and host data
  std::map<CacheKey, std::unique_ptr<Buffer>> caches_;
  std::vector<std::unique_ptr<Buffer>> step_buffers_;  // one per device, where needed
};

}  // namespace infer
