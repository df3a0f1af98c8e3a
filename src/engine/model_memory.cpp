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

// The message for caches that do not fit.
std::string shortage_text(const PlacedModel& placed, const DeviceUse& use) {
  const std::vector<CacheGroup>& groups = placed.model().cache_groups();
  uint64_t tokens = 0, states = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    const auto n = static_cast<uint64_t>(placed.options().n_blocks[g]);
    if (groups[g].kind == CacheKind::kState) states = std::max(states, n);
    else tokens = std::max(tokens, n * kBlockTokens);
  }
  const std::string free = concat("; ", use.device, " has ", bytes_text(use.memory.free), " free. Choose a ");
  const std::string bytes = bytes_text(use.cache);
  if (tokens == 0)
    return concat("[memory] ", grouped(states), " recurrent states need ", bytes, free, "lower --parallel.");
  return concat("[memory] A context of ", grouped(tokens), " tokens needs ", bytes, " of KV cache", free,
                "smaller -c.");
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
    throw DeviceMemoryError(*placed_.devices()[d], shortage_text(placed_, uses[d]));
  }
  for (int layer = 0; layer < placed_.model().n_layer(); ++layer) {
    for (const LayerCache& cache : placed_.caches(layer)) {
      caches_[key_of(cache.desc)] =
          allocate_on(device(cache.device), cache.block_bytes * static_cast<size_t>(cache.n_blocks));
    }
  }
  step_buffers(largest);
}

void ModelMemory::upload_weights(const LoadingProgress& progress) {
  uint64_t done = 0, total = 0;
  for (const auto& [key, buffer] : weights_) total += buffer->size();
  std::set<const Buffer*> uploaded;  // the output matrix may be tied to the embedding
  for (const int layer : placed_.model().all_layers()) {
    for (const Weight* weight : placed_.model().weights_of_layer(layer)) {
      for (int d = 0; d < n_devices(); ++d) {
        const auto found = weights_.find({d, weight->host});
        if (found == weights_.end() || !uploaded.insert(found->second.get()).second) continue;
        stream(d).upload(*found->second, 0, weight->host, weight->desc.bytes());
        done += weight->desc.bytes();
        if (progress) progress(done, total);
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

CacheRef ModelMemory::cache(const CacheDesc& desc) const {
  return {nullptr, caches_.at(key_of(desc)).get(), 0, placed_.options().n_blocks[static_cast<size_t>(desc.group)]};
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
    for (const LayerCache& cache : placed_.caches(layer)) {
      if (cache.desc.group != group) continue;
      const size_t bytes = cache.block_bytes;
      Buffer* buffer = caches_.at(key_of(cache.desc)).get();
      copies[static_cast<size_t>(cache.device)].push_back(
          {buffer, static_cast<size_t>(to) * bytes, buffer, static_cast<size_t>(from) * bytes, bytes});
    }
  }
  for (size_t d = 0; d < copies.size(); ++d) {
    if (!copies[d].empty()) streams_[d]->copy(copies[d]);
  }
}

}  // namespace infer
