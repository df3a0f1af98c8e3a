// The codebooks of the IQ types in a device's memory. As arrays in a shader, they might be copied for each invocation.
#pragma once

#include <map>
#include <memory>

#include "backends/vulkan/pipelines.h"
#include "ggml-like/backend.h"

namespace infer::vulkan {

class Memory;

// One thread at a time.
class Codebooks {
 public:
  // Memory and pipelines outlive this.
  Codebooks(Memory& memory, Pipelines& pipelines) : memory_(memory), pipelines_(pipelines) {}

  // The packed entries of a type, 16 bits each (ggml-like/quant/codebooks_data.h); null for types without a codebook.
  // Uploaded at the first call. Throws Error(kOutOfMemory).
  const Buffer* get(DataType type);

 private:
  Memory& memory_;
  Pipelines& pipelines_;
  std::map<const void*, std::unique_ptr<Buffer>> buffers_;  // by their data
};

}  // namespace infer::vulkan
