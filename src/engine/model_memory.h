// The memory of a run on its devices: weights, KV cache, and a place for each step's inputs. One thread.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "ggml-like/error.h"
#include "src/engine/memory_use.h"

namespace infer {

// Error(kOutOfMemory) that says whose memory was short: offloading fewer layers relieves every device but the host.
class DeviceMemoryError final : public Error {
 public:
  DeviceMemoryError(const Device& device, const std::string& message)
      : Error(ErrorCode::kOutOfMemory, message), on_host_(device.is_host()) {}
  bool on_host() const { return on_host_; }

 private:
  bool on_host_;
};

// Memory of the device, and staging memory for it. Both throw DeviceMemoryError.
std::unique_ptr<Buffer> allocate_on(Device& device, size_t bytes);
std::unique_ptr<Buffer> allocate_staging_on(Device& device, size_t bytes);

class ModelMemory final : public TensorMemory {
 public:
  // `placed` and `streams`, one per device, outlive this.
  ModelMemory(const PlacedModel& placed, std::span<const std::unique_ptr<Stream>> streams);

  // Takes the memory of all weights that `largest` reads, of the cache, and of step inputs. Throws DeviceMemoryError
  // before the first weight is copied, so that a failure is cheap.
  void allocate(const Plan& largest, std::span<const DeviceUse> uses);
  // Copies the weights that allocate() made room for to their devices; complete on return.
  void upload_weights();

  // A plan of another bucket may place a node where the largest did not, if a device supports it in one size only: a
  // weight that is not there yet is allocated and uploaded now.
  BufferPlace weight(const Weight& weight, int device) override;
  CacheRef cache(int layer) const override;
  // Where the plan's devices of their own memory find the step's inputs, by device; null for host devices.
  std::vector<Buffer*> step_buffers(const Plan& plan);

  // Copies a whole KV block in every layer of a cache group, where it lies and without waiting: what runs later sees
  // the copy. Blocks of other groups have ids of their own.
  void copy_block(int group, int32_t from, int32_t to);

 private:
  Device& device(int index) const { return *placed_.devices()[static_cast<size_t>(index)]; }
  Stream& stream(int index) const { return *streams_[static_cast<size_t>(index)]; }
  int n_devices() const { return static_cast<int>(placed_.devices().size()); }

  const PlacedModel& placed_;
  const std::span<const std::unique_ptr<Stream>> streams_;
  std::map<std::pair<int, const void*>, std::unique_ptr<Buffer>> weights_;  // by device and host data
  std::vector<std::unique_ptr<Buffer>> caches_;                             // one per layer
  std::vector<std::unique_ptr<Buffer>> step_buffers_;                       // one per device, where needed
};

}  // namespace infer
