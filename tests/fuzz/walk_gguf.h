// Reads everything of a parsed GGUF file through its public interface, for the fuzz target and the regression test:
// whatever the bytes were, this must neither crash nor read outside them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ggml-like/error.h"
#include "ggml-like/gguf.h"

namespace infer::test {

// A number that depends on everything that was read, so that no read is optimized away.
inline uint64_t walk_gguf(std::span<const std::byte> bytes) {
  uint64_t sum = 0;
  const auto attempt = [&](auto look_up) {
    try {
      if (const auto found = look_up()) ++sum;
    } catch (const Error&) {
      sum += 2;
    }
  };
  try {
    const auto file = GgufFile::parse(bytes, "fuzz");
    sum += file->version() + file->alignment() + file->total_file_bytes() + file->parts().size();
    for (const auto& entry : file->metadata()) {
      const std::string& key = entry.first;
      const GgufValue& value = entry.second;
      if (file->find(key) != &value) return CHECK_INTERNAL(false), 0;
      sum += value.array_length() + gguf_type_name(value.type).size();
      attempt([&] { return file->get_int(key); });
      attempt([&] { return file->get_float(key); });
      attempt([&] { return file->get_bool(key); });
      attempt([&] { return file->get_string(key); });
      attempt([&] { return file->get_int_array(key); });
      attempt([&] { return file->get_float_array(key); });
      attempt([&] { return file->get_string_array(key); });
    }
    for (const GgufTensor& tensor : file->tensors()) {
      if (file->find_tensor(tensor.name) != &tensor) return CHECK_INTERNAL(false), 0;
      sum += static_cast<uint64_t>(tensor.n_elements()) + tensor.shape_string().size();
      for (size_t i = 0; i < tensor.n_bytes; ++i) sum += static_cast<uint64_t>(tensor.data[i]);
    }
  } catch (const Error&) {
    sum += 3;
  }
  return sum;
}

}  // namespace infer::test
