#include "ggml-like/backend.h"

#include <sys/mman.h>
#include <unistd.h>

#include <fstream>

#include "ggml-like/error.h"

namespace infer {
namespace {

class MappedBuffer final : public Buffer {
 public:
  explicit MappedBuffer(size_t bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
      throw Error(ErrorCode::kOutOfMemory, concat("[memory] ", bytes, " bytes could not be allocated"));
    data_ = static_cast<std::byte*>(p);
    if (bytes >= (size_t{4} << 20)) madvise(p, bytes, MADV_HUGEPAGE);
  }
  ~MappedBuffer() override {
    if (data_) munmap(data_, bytes_);
  }
  MappedBuffer(const MappedBuffer&) = delete;
  MappedBuffer& operator=(const MappedBuffer&) = delete;
  size_t size() const override { return bytes_; }
  std::byte* host() const override { return data_; }

 private:
  size_t bytes_;
  std::byte* data_ = nullptr;
};

class WrappedBuffer final : public Buffer {
 public:
  WrappedBuffer(std::byte* data, size_t bytes) : data_(data), bytes_(bytes) {}
  size_t size() const override { return bytes_; }
  std::byte* host() const override { return data_; }

 private:
  std::byte* data_;
  size_t bytes_;
};

}  // namespace

DeviceMemory host_memory() {
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  DeviceMemory memory = {static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * page,
                         static_cast<uint64_t>(sysconf(_SC_AVPHYS_PAGES)) * page};
  std::ifstream file("/proc/meminfo");
  std::string key;
  for (uint64_t kib = 0; file >> key >> kib; file.ignore(64, '\n')) {
    if (key == "MemAvailable:") memory.free = kib * 1024;
  }
  return memory;
}

std::unique_ptr<Buffer> allocate_host(size_t bytes) { return std::make_unique<MappedBuffer>(bytes); }

std::unique_ptr<Buffer> wrap_host(std::byte* data, size_t bytes) {
  return std::make_unique<WrappedBuffer>(data, bytes);
}

void Stream::run(uint64_t, std::span<BoundNode> nodes) {
  for (BoundNode& node : nodes) node.record->launch(*node.prepared, node.launch, *this);
}

void Stream::parallel_for(int64_t n, const std::function<void(int64_t piece, int thread)>& body) {
  for (int64_t piece = 0; piece < n; ++piece) body(piece, 0);
}

size_t Device::cache_block_bytes(const CacheDesc& cache) const {
  const TypeTraits &k = traits(cache.key_type), &v = traits(cache.value_type);
  const size_t per_token = static_cast<size_t>(cache.key_dim) / k.block_size * k.type_size +
                           static_cast<size_t>(cache.value_dim) / v.block_size * v.type_size;
  return per_token * cache.n_kv_head * kBlockTokens;
}

const OpRecord* Device::find(Op op) const {
  for (const OpRecord& record : operations()) {
    if (record.op == op) return &record;
  }
  return nullptr;
}

bool Device::supports(const OpDesc& op) const {
  const OpRecord* record = find(op.op);
  return record && record->supports(op, *this);
}

}  // namespace infer
