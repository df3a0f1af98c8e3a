#include "src/engine/model_memory.h"

#include <algorithm>
#include <set>

#include "ggml-like/bytes_text.h"

namespace infer {

namespace {

std::unique_ptr<Buffer> allocate(Device& device, size_t bytes,
                                 std::unique_ptr<Buffer> (Device::*allocate_bytes)(size_t bytes)) {
  try {
    return (device.*allocate_bytes)(bytes);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kOutOfMemory) throw;
    throw DeviceMemoryError(device, error.what());
  }
}

}  // namespace

std::unique_ptr<Buffer> allocate_on(Device& device, size_t bytes) { return allocate(device, bytes, &Device::allocate); }

std::unique_ptr<Buffer> allocate_staging_on(Device& device, size_t bytes) {
  return allocate(device, bytes, &Device::allocate_staging);
}

ModelMemory::ModelMemory(const PlacedModel& placed, std::span<const std::unique_ptr<Stream>> streams)
    : placed_(placed), streams_(streams), step_buffers_(placed.devices().size()) {}

void ModelMemory::allocate(const Plan& largest, std::span<const DeviceUse> uses) {
  for (int d = 0; d < n_devices(); ++d) {
    if (device(d).is_host()) continue;
    for (const Weight* weight : largest.weights_on(d)) {
      std::unique_ptr<Buffer>& buffer = weights_[{d, weight->host}];
      if (!buffer) buffer = allocate_on(device(d), weight->desc.bytes());
    }
  }
  for (size_t d = 0; d < uses.size(); ++d) {
    if (uses[d].cache <= uses[d].memory.free) continue;
    const int64_t blocks = *std::max_element(placed_.options().n_blocks.begin(), placed_.options().n_blocks.end());
    throw DeviceMemoryError(*placed_.devices()[d],
                            concat("[memory] A context of ", grouped(static_cast<uint64_t>(blocks * kBlockTokens)),
                                   " tokens needs ", bytes_text(uses[d].cache), " of KV cache; ", uses[d].device,
                                   " has ", bytes_text(uses[d].memory.free), " free. Choose a smaller -c."));
  }
  for (int layer = 0; layer < placed_.model().n_layer(); ++layer) {
    const auto n = static_cast<size_t>(placed_.cache_blocks(layer));
    caches_.push_back(allocate_on(placed_.device_of_layer(layer), placed_.cache_block_bytes(layer) * n));
  }
  step_buffers(largest);
}

void ModelMemory::upload_weights() {
  std::set<const Buffer*> uploaded;  // the output matrix may be tied to the embedding
  for (const int layer : placed_.model().all_layers()) {
    for (const Weight* weight : placed_.model().weights_of_layer(layer)) {
      for (int d = 0; d < n_devices(); ++d) {
        const auto found = weights_.find({d, weight->host});
        if (found == weights_.end() || !uploaded.insert(found->second.get()).second) continue;
        stream(d).upload(*found->second, 0, weight->host, weight->desc.bytes());
      }
    }
  }
  for (const auto& stream : streams_) stream->synchronize();
}

BufferPlace ModelMemory::weight(const Weight& weight, int d) {
  std::unique_ptr<Buffer>& buffer = weights_[{d, weight.host}];
  if (!buffer) {
    buffer = allocate_on(device(d), weight.desc.bytes());
    stream(d).upload(*buffer, 0, weight.host, weight.desc.bytes());
  }
  return {buffer.get(), 0};
}

CacheRef ModelMemory::cache(int layer) const {
  return {nullptr, caches_[static_cast<size_t>(layer)].get(), 0, placed_.cache_blocks(layer)};
}

std::vector<Buffer*> ModelMemory::step_buffers(const Plan& plan) {
  std::vector<Buffer*> buffers(step_buffers_.size(), nullptr);
  for (int d = 0; d < n_devices(); ++d) {
    if (device(d).is_host() || !plan.uses(d)) continue;
    std::unique_ptr<Buffer>& buffer = step_buffers_[static_cast<size_t>(d)];
    if (!buffer) buffer = allocate_on(device(d), StepLayout(placed_.options().capacity).bytes());
    buffers[static_cast<size_t>(d)] = buffer.get();
  }
  return buffers;
}

void ModelMemory::copy_block(int group, int32_t from, int32_t to) {
  std::vector<std::vector<CopyRange>> copies(streams_.size());
  for (const int32_t layer : placed_.model().cache_groups()[static_cast<size_t>(group)].layers) {
    const size_t bytes = placed_.cache_block_bytes(layer);
    Buffer* cache = caches_[static_cast<size_t>(layer)].get();
    copies[static_cast<size_t>(placed_.placement().of_layer(layer))].push_back(
        {cache, static_cast<size_t>(to) * bytes, cache, static_cast<size_t>(from) * bytes, bytes});
  }
  for (size_t d = 0; d < copies.size(); ++d) {
    if (!copies[d].empty()) streams_[d]->copy(copies[d]);
  }
}

}  // namespace infer
