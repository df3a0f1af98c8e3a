// Parses one GGUF part into metadata and tensor table, checking every size. Internal to gguf_reader.cpp. It never reads
// tensor data, so it needs only the start of a file and the file's size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ggml-like/gguf.h"

namespace infer {

struct GgufPart {
  uint32_t version = 0;
  uint32_t alignment = 0;
  std::vector<std::pair<std::string, GgufValue>> metadata;
  std::vector<GgufTensor> tensors;  // file_offset is relative to this part, data is null, part is 0
  std::vector<uint32_t> key_order;  // indices of metadata, sorted by key
};

// `start`: the first bytes of a part of `file_size` bytes. Returns nullopt if the header extends beyond `start` but not
// beyond the file; the caller then retries with more. `name` appears in error messages. REQUIRES: at least 16 bytes, if
// the file has that many.
std::optional<GgufPart> parse_gguf_part(std::span<const std::byte> start, uint64_t file_size, const std::string& name);

}  // namespace infer
