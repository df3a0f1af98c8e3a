// The bytes of one open file: mapped, or read into memory. Internal to the GGUF reader. A FileBytes owns what it
// points to; immutable once loaded, any thread may read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace infer {

class FileBytes {
 public:
  // Opens a regular file for reading. Throws Error(kIo) with the system's reason, kInvalidFile for a directory, device
  // or pipe.
  explicit FileBytes(const std::filesystem::path& path);
  ~FileBytes();
  FileBytes(FileBytes&& other) noexcept;
  FileBytes& operator=(FileBytes&&) = delete;

  uint64_t size() const { return size_; }  // when it was opened

  // Maps the whole file read-only; false when the system refuses.
  bool map();
  // Reads the whole file into memory aligned to a page; in huge pages where the system gives them.
  void load();
  // What map() or load() brought.
  std::span<const std::byte> bytes() const { return {data_, data_ ? size_ : 0}; }

  // The first n bytes, n <= size(), as a copy.
  std::vector<std::byte> read_start(uint64_t n) const;
  // The mapping and the memory stay; the descriptor goes.
  void close_descriptor();

 private:
  // Bytes [begin, begin + n) of the file.
  void read_into(std::byte* target, uint64_t begin, uint64_t n) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
  std::byte* data_ = nullptr;
  bool mapped_ = false;  // else data_ comes from aligned_alloc
};

}  // namespace infer
