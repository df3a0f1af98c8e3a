// The bytes of one open file, mapped or read into memory. Internal to the GGUF reader. A FileBytes owns its memory;
// once loaded it is immutable, and any thread may read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace infer {

class FileBytes {
 public:
  // Opens a regular file for reading. Throws Error(kIo) with the system's reason, and Error(kInvalidFile) for a
  // directory, device or pipe.
  explicit FileBytes(const std::filesystem::path& path);
  ~FileBytes();
  FileBytes(FileBytes&& other) noexcept;
  FileBytes& operator=(FileBytes&&) = delete;

  uint64_t size() const { return size_; }  // when opened

  // Maps the whole file read-only; false if the system refuses.
  bool map();
  // Reads the whole file into page-aligned memory, in huge pages if available.
  void load();
  // The bytes loaded by map() or load().
  std::span<const std::byte> bytes() const { return {data_, data_ ? size_ : 0}; }

  // Copies the first n bytes, n <= size().
  std::vector<std::byte> read_start(uint64_t n) const;
  // Closes the descriptor; the mapping or memory stays.
  void close_descriptor();

 private:
  // Reads bytes [begin, begin + n) of the file.
  void read_into(std::byte* target, uint64_t begin, uint64_t n) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
  std::byte* data_ = nullptr;
  bool mapped_ = false;  // false: data_ comes from aligned_alloc
};

}  // namespace infer
