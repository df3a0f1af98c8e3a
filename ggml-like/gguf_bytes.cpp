#include "ggml-like/gguf_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <future>
#include <thread>
#include <utility>

#include "ggml-like/backend.h"
#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "ggml-like/printable.h"

namespace infer {
namespace {

constexpr size_t kPage = 4096, kHugePage = size_t{2} << 20;
constexpr uint64_t kMaxRead = 1 << 30;   // Linux transfers at most 2 GiB per call
constexpr uint64_t kMinPart = 64 << 20;  // bytes that justify another thread

[[noreturn]] void fail(const std::filesystem::path& path, ErrorCode code, const std::string& what) {
  throw Error(code, concat("[gguf] ", printable_path(path), ": ", what));
}

}  // namespace

FileBytes::FileBytes(const std::filesystem::path& path) : path_(path) {
  // Without O_NONBLOCK, opening a named pipe would wait for its writer; it has no effect on regular files.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) fail(path, ErrorCode::kIo, concat("cannot open: ", std::strerror(errno)));
  struct stat status {};
  const bool known = ::fstat(descriptor_, &status) == 0;
  const int reason = errno;
  if (known && S_ISREG(status.st_mode)) {
    size_ = static_cast<uint64_t>(status.st_size);
    return;
  }
  close_descriptor();
  if (!known) fail(path, ErrorCode::kIo, concat("cannot stat: ", std::strerror(reason)));
  fail(path, ErrorCode::kInvalidFile,
       S_ISDIR(status.st_mode) ? "expected a file, found a directory"
                               : "expected a regular file, found a device or pipe");
}

FileBytes::~FileBytes() {
  close_descriptor();
  if (mapped_) ::munmap(data_, size_);
  else std::free(data_);
}

FileBytes::FileBytes(FileBytes&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      data_(std::exchange(other.data_, nullptr)),
      mapped_(std::exchange(other.mapped_, false)) {}

bool FileBytes::map() {
  if (size_ == 0) return false;
  void* address = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor_, 0);
  if (address == MAP_FAILED) return false;
  data_ = static_cast<std::byte*>(address);
  mapped_ = true;
  return true;
}

void FileBytes::load() {
  if (size_ == 0) return;
  // Linux overcommits: it grants memory it does not have and kills the process when that is touched.
  if (const uint64_t free = host_memory().free; size_ > free) {
    fail(path_, ErrorCode::kOutOfMemory,
         concat("expected ", bytes_text(size_), " of free memory to read the file, found ", bytes_text(free)));
  }
  // Weights are read page by page; with huge pages, address translation costs far less.
  const size_t page = size_ >= kHugePage ? kHugePage : kPage;
  const size_t rounded = (size_ + page - 1) / page * page;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(page, rounded));
  if (!memory) fail(path_, ErrorCode::kOutOfMemory, concat("cannot allocate ", bytes_text(size_), " to read the file"));
  if (page == kHugePage) ::madvise(memory, rounded, MADV_HUGEPAGE);
  data_ = memory;
  // Most of the time is spent by the kernel preparing pages, which several threads can share.
  const uint64_t parts =
      std::clamp<uint64_t>(std::min<uint64_t>(std::thread::hardware_concurrency(), size_ / kMinPart), 1, 8);
  const uint64_t part = (rounded / page + parts - 1) / parts * page;
  std::vector<std::future<void>> readers;
  for (uint64_t begin = 0; begin < size_; begin += part) {
    readers.push_back(
        std::async(std::launch::async, [=, this] { read_into(memory + begin, begin, std::min(part, size_ - begin)); }));
  }
  for (std::future<void>& reader : readers) reader.get();
}

std::vector<std::byte> FileBytes::read_start(uint64_t n) const {
  std::vector<std::byte> bytes(n);
  read_into(bytes.data(), 0, n);
  return bytes;
}

void FileBytes::read_into(std::byte* target, uint64_t begin, uint64_t n) const {
  for (uint64_t done = 0; done < n;) {
    const ssize_t got =
        ::pread(descriptor_, target + done, std::min(n - done, kMaxRead), static_cast<off_t>(begin + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path_, ErrorCode::kIo, concat("cannot read: ", std::strerror(errno)));
    if (got == 0)
      fail(path_, ErrorCode::kIo,
           concat("expected ", size_, " bytes, found the end at byte ", begin + done, " while reading"));
    done += static_cast<uint64_t>(got);
  }
}

void FileBytes::close_descriptor() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

}  // namespace infer
