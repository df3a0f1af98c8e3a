// The parser of one GGUF part: from bytes to metadata and tensor table, every size checked. Internal to the reader in
// gguf_reader.cpp. It never looks at tensor data, so it needs only the start of a file and the file's size.
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
  std::vector<GgufTensor> tensors;  // file_offset from the start of this part, data null, part 0
  std::vector<uint32_t> key_order;  // indices of metadata, sorted by key
};

// `start`: the first bytes of a part of `file_size` bytes. Returns nullopt when `start` is shorter than the header but
// the file is not; the caller then tries again with more. `name` appears in error messages.
// REQUIRES at least 16 bytes of a file that has so many.
std::optional<GgufPart> parse_gguf_part(std::span<const std::byte> start, uint64_t file_size, const std::string& name);

}  // namespace infer
