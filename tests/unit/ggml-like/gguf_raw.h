// GGUF files written byte by byte, so that tests can create damaged ones; independent of the reader and the writer.
// Also the GGUF tests' helpers for folders and messages.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ggml-like/error.h"
#include "ggml-like/gguf.h"

namespace infer::test {

struct Raw {
  std::string bytes;

  template <typename T>
  Raw& number(T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  Raw& u32(uint32_t value) { return number(value); }
  Raw& u64(uint64_t value) { return number(value); }
  Raw& text(const std::string& value) {
    u64(value.size());
    bytes += value;
    return *this;
  }
  Raw& header(uint64_t n_tensors, uint64_t n_entries, uint32_t version = 3) {
    bytes += "GGUF";
    return u32(version).u64(n_tensors).u64(n_entries);
  }
  // A key and its type; the value follows.
  Raw& key(const std::string& name, GgufType type) { return text(name).u32(static_cast<uint32_t>(type)); }
  Raw& array(GgufType element_type, uint64_t count) { return u32(static_cast<uint32_t>(element_type)).u64(count); }
  // `sizes` in file order: the fastest dimension first.
  Raw& tensor(const std::string& name, const std::vector<uint64_t>& sizes, uint32_t type, uint64_t offset) {
    text(name).u32(static_cast<uint32_t>(sizes.size()));
    for (const uint64_t size : sizes) u64(size);
    return u32(type).u64(offset);
  }
  Raw& pad(size_t alignment) {
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    return *this;
  }
  Raw& data(size_t n) {
    for (size_t i = 0; i < n; ++i) bytes += static_cast<char>(i);
    return *this;
  }
};

// A valid file with metadata of several types and two tensors.
inline std::string small_valid_file() {
  Raw raw;
  raw.header(2, 5);
  raw.key("general.architecture", GgufType::kString).text("llama");
  raw.key("llama.block_count", GgufType::kUint32).u32(2);
  raw.key("names", GgufType::kArray).array(GgufType::kString, 2).text("a").text("bc");
  raw.key("scores", GgufType::kArray).array(GgufType::kFloat32, 2).number(0.5F).number(-1.0F);
  raw.key("flag", GgufType::kBool).number(uint8_t{1});
  raw.tensor("a.weight", {4, 2}, 0, 0).tensor("b.weight", {32}, 8, 32);
  return raw.pad(32).data(32 + 34).bytes;
}

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

inline std::shared_ptr<const GgufFile> parse(const std::string& bytes) {
  return GgufFile::parse(as_bytes(bytes), "test.gguf");
}

// The message of the infer::Error that `action` throws, or "". Other exceptions are passed on and fail the test.
template <typename Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}
inline std::string parse_error(const std::string& bytes) {
  return message_of([&] { parse(bytes); });
}

// A new folder, removed with its contents at the end of the scope.
struct TemporaryFolder {
  std::filesystem::path path;
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "infer-test-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary folder " + name);
    path = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path / name, std::ios::binary) << bytes;
    return path / name;
  }
  size_t entries() const {
    size_t n = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path)) ++n;
    return n;
  }
};

// The heap memory that this thread requested through operator new, counted in gguf_allocation.cpp.
struct AllocationCount {
  size_t total = 0, largest = 0;
};
AllocationCount& allocation_count();

}  // namespace infer::test
