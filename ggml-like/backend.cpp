#include "ggml-like/backend.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

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

std::unique_ptr<Buffer> allocate_host(size_t bytes) { return std::make_unique<MappedBuffer>(bytes); }

std::unique_ptr<Buffer> wrap_host(std::byte* data, size_t bytes) {
  return std::make_unique<WrappedBuffer>(data, bytes);
}

void Stream::parallel_for(int64_t n, const std::function<void(int64_t piece, int thread)>& body) {
  for (int64_t piece = 0; piece < n; ++piece) body(piece, 0);
}

class HostStream::NodeList final : public Segment {
 public:
  std::vector<Node> nodes;
};

std::unique_ptr<Segment> HostStream::compile(std::span<const BoundNode> nodes) {
  auto list = std::make_unique<NodeList>();
  list->nodes.reserve(nodes.size());
  for (const BoundNode& node : nodes) list->nodes.push_back({node.record, node.prepared, {node.launch, &step_}});
  return list;
}

void HostStream::run(Segment& segment) { run_nodes(static_cast<const NodeList&>(segment).nodes, step_); }

void HostStream::run_nodes(std::span<const Node> nodes, const StepView&) {
  for (const Node& node : nodes) node.record->launch(*node.prepared, node.launch, *this);
}

void HostStream::upload(Buffer& to, size_t offset, const void* from, size_t bytes) {
  std::memcpy(to.host() + offset, from, bytes);
}

void HostStream::download(void* to, const Buffer& from, size_t offset, size_t bytes) {
  std::memcpy(to, from.host() + offset, bytes);
}

void HostStream::copy(std::span<const CopyRange> ranges) {
  for (const CopyRange& r : ranges) std::memcpy(r.to->host() + r.to_offset, r.from->host() + r.from_offset, r.bytes);
}

std::unique_ptr<Event> HostStream::record() {
  class Done final : public Event {
    void wait() const override {}
  };
  return std::make_unique<Done>();
}

size_t Device::cache_block_bytes(const CacheDesc& cache) const {
  if (cache.slot_values > 0) return static_cast<size_t>(cache.slot_values) * sizeof(float);
  const TypeTraits &k = traits(cache.key_type), &v = traits(cache.value_type);
  const size_t per_token = static_cast<size_t>(cache.key_dim) / k.block_size * k.type_size +
                           static_cast<size_t>(cache.stored_value_dim()) / v.block_size * v.type_size;
  return per_token * cache.n_kv_head * static_cast<size_t>(cache.entries_per_block());
}

std::vector<OpRecord> all_records(std::initializer_list<std::span<const OpRecord>> files) {
  std::vector<OpRecord> records;
  for (const std::span<const OpRecord> file : files) records.insert(records.end(), file.begin(), file.end());
  return records;
}

bool Device::keeps(const CacheDesc& cache) const {
  if (cache.use == CacheUse::kTokenIds) return is_host();
  if (cache.slot_values > 0) {
    const std::span<const OpInfo> ops = all_ops();
    return std::all_of(ops.begin(), ops.end(), [&](const OpInfo& info) {
      return !info.has_state || info.op == Op::kNgramEmbed || find(info.op);
    });
  }
  if (cache.use != CacheUse::kAttention && !(find(Op::kSelectPositions) && find(Op::kSparseAttention))) return false;
  if (!cache.latent) return true;
  const TensorDesc key = make_desc(DataType::kF32, {1, cache.n_kv_head, cache.key_dim}, RowKind::kTokens);
  const TensorDesc* const inputs[] = {&key, nullptr};
  const OpParams none;
  return supports({Op::kKvStore, &none, inputs, {}, &cache});
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
