#include "tests/support/island_device.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "ggml-like/error.h"

namespace infer::test {
namespace {

using State = std::shared_ptr<IslandState>;

// Jobs in order. They run when somebody waits for them.
class Queue {
 public:
  using Job = std::function<void()>;
  void push(Job job) { jobs_.push_back(std::move(job)); }
  int64_t end() const { return n_done_ + static_cast<int64_t>(jobs_.size()); }  // jobs so far
  int64_t n_done() const { return n_done_; }
  // Rethrows the exception of a job, which counts as done.
  void run_until(int64_t n) {
    while (n_done_ < n) {
      const Job job = std::move(jobs_.front());
      jobs_.pop_front();
      ++n_done_;
      job();
    }
  }
  void settle() {
    try {
      run_until(end());
    } catch (const Error&) {
      // The results show it.
    }
  }

 private:
  std::deque<Job> jobs_;
  int64_t n_done_ = 0;
};

// The queues of a device's streams.
using Queues = std::shared_ptr<std::set<Queue*>>;

class IslandBuffer final : public Buffer {
 public:
  IslandBuffer(size_t bytes, State state, Queues queues)
      : state_(std::move(state)), queues_(std::move(queues)), memory_(allocate_host(bytes)) {
    ++state_->live_buffers;
    state_->used += bytes;
    state_->most_used = std::max(state_->most_used, state_->used);
  }
  ~IslandBuffer() override {
    for (Queue* queue : *queues_) queue->settle();
    --state_->live_buffers;
    state_->used -= memory_->size();
  }
  size_t size() const override { return memory_->size(); }
  std::byte* host() const override { return nullptr; }
  Buffer& memory() const { return *memory_; }
  const IslandState& state() const { return *state_; }

 private:
  State state_;
  Queues queues_;
  std::unique_ptr<Buffer> memory_;
};

// Null for staging memory.
const IslandBuffer* island_buffer(const Buffer* buffer) { return dynamic_cast<const IslandBuffer*>(buffer); }

Buffer* memory_of(Buffer* buffer) {
  const IslandBuffer* island = island_buffer(buffer);
  return island ? &island->memory() : nullptr;
}

class IslandDevice final : public Device {
 public:
  IslandDevice(std::string name, std::unique_ptr<Device> inner, State state);
  std::string name() const override { return name_; }
  std::string description() const override { return "an island with the kernels of " + inner_->name(); }
  DeviceMemory memory() const override {
    const uint64_t total = state_->tells_budget ? state_->budget : uint64_t{1} << 50;
    return {total, total - std::min<uint64_t>(total, state_->used)};
  }
  bool is_host() const override { return false; }
  std::unique_ptr<Buffer> allocate(size_t bytes) override {
    const int64_t n = state_->n_allocations++;
    const bool fails =
        n == state_->fail_at || (state_->fails_ever_after && state_->fail_at >= 0 && n > state_->fail_at);
    if (fails || bytes > state_->budget - state_->used) {
      throw Error(ErrorCode::kOutOfMemory, concat("[", name_, "] ", bytes, " bytes, found too few"));
    }
    return std::make_unique<IslandBuffer>(bytes, state_, queues_);
  }
  std::unique_ptr<Buffer> allocate_staging(size_t bytes) override { return allocate_host(bytes); }
  bool can_copy_from(const Device& other) const override {
    return &other == this || (state_->has_peers && dynamic_cast<const IslandDevice*>(&other));
  }
  std::unique_ptr<Stream> create_stream() override;
  std::span<const OpRecord> operations() const override { return records_; }
  size_t cache_block_bytes(const CacheDesc& cache) const override { return inner_->cache_block_bytes(cache); }
  DataType default_cache_type() const override { return inner_->default_cache_type(); }
  Device& inner() const { return *inner_; }
  const IslandState& state() const { return *state_; }

 private:
  const std::string name_;
  const std::unique_ptr<Device> inner_;
  const State state_;
  const Queues queues_ = std::make_shared<std::set<Queue*>>();
  std::vector<OpRecord> records_;
};

class IslandEvent final : public Event {
 public:
  IslandEvent(State state, std::shared_ptr<Queue> queue)
      : state_(std::move(state)), queue_(std::move(queue)), position_(queue_->end()) {}
  void wait() const override {
    state_->n_waits += queue_->n_done() < position_;
    reach();
  }
  void reach() const { queue_->run_until(position_); }

 private:
  State state_;
  std::shared_ptr<Queue> queue_;
  int64_t position_;
};

// Nodes bound to the host memory of the island's buffers.
class IslandSegment final : public Segment {
 public:
  IslandSegment(std::span<const BoundNode> nodes, Device& inner, HostStream& stream, std::shared_ptr<Queue> queue,
                State state)
      : state_(std::move(state)),
        layout_(nodes[0].launch.step_layout),
        step_(memory_of(nodes[0].launch.step_buffer)),
        stream_(stream),
        queue_(std::move(queue)) {
    const auto shown = [&](std::span<const TensorRef> refs) -> std::span<const TensorRef> {
      std::vector<TensorRef>& all = refs_.emplace_back(refs.begin(), refs.end());
      for (TensorRef& t : all) t.buffer = memory_of(t.buffer);
      return all;
    };
    std::vector<BoundNode> bound(nodes.begin(), nodes.end());
    for (BoundNode& node : bound) {
      node.record = inner.find(node.record->op);
      node.launch.inputs = shown(node.launch.inputs);
      node.launch.outputs = shown(node.launch.outputs);
      node.launch.cache.buffer = memory_of(node.launch.cache.buffer);
      node.launch.scratch.buffer = memory_of(node.launch.scratch.buffer);
    }
    inner_segment_ = stream.compile(bound);
    ++state_->live_segments;
  }
  ~IslandSegment() override {
    --state_->live_segments;
    if (last_use > queue_->n_done()) queue_->settle();
  }

  // Reads the counts from the device's memory, where they were uploaded.
  void run() {
    stream_.set_step({*layout_, reinterpret_cast<const int32_t*>(step_->host())});
    stream_.run(*inner_segment_);
  }
  int64_t last_use = 0;  // the end of the queue when it was last queued

 private:
  State state_;
  const StepLayout* layout_;
  Buffer* step_;
  HostStream& stream_;
  std::shared_ptr<Queue> queue_;
  std::deque<std::vector<TensorRef>> refs_;
  std::unique_ptr<Segment> inner_segment_;
};

class IslandStream final : public Stream {
 public:
  IslandStream(Device& inner, State state, Queues queues)
      : inner_(inner), state_(std::move(state)), queues_(std::move(queues)), stream_(inner.create_stream()) {
    queues_->insert(queue_.get());
  }
  ~IslandStream() override {
    queue_->settle();
    queues_->erase(queue_.get());
  }

  std::unique_ptr<Segment> compile(std::span<const BoundNode> nodes) override {
    ++state_->n_compiles;
    return std::make_unique<IslandSegment>(nodes, inner_, static_cast<HostStream&>(*stream_), queue_, state_);
  }
  void run(Segment& s) override {
    auto& segment = static_cast<IslandSegment&>(s);
    queue_->push([&segment] { segment.run(); });
    segment.last_use = queue_->end();
  }
  void upload(Buffer& to, size_t offset, const void* from, size_t bytes) override {
    ++state_->n_uploads;
    CHECK_INTERNAL(offset + bytes <= to.size());
    const auto* first = static_cast<const std::byte*>(from);
    const std::vector<std::byte> data(first, first + bytes);
    std::byte* target = memory_of(&to)->host() + offset;
    queue_->push([=] { std::memcpy(target, data.data(), data.size()); });
  }
  void download(void* to, const Buffer& from, size_t offset, size_t bytes) override {
    ++state_->n_downloads;
    CHECK_INTERNAL(offset + bytes <= from.size());
    const std::byte* source = island_buffer(&from)->memory().host() + offset;
    queue_->push([=] { std::memcpy(to, source, bytes); });
  }
  void copy(std::span<const CopyRange> ranges) override;

  std::unique_ptr<Event> record() override { return std::make_unique<IslandEvent>(state_, queue_); }
  void wait(const Event& event) override {
    const IslandEvent other = static_cast<const IslandEvent&>(event);
    queue_->push([other] { other.reach(); });
  }
  void synchronize() override { IslandEvent(state_, queue_).wait(); }

 private:
  Device& inner_;
  State state_;
  Queues queues_;
  std::unique_ptr<Stream> stream_;
  std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
};

void IslandStream::copy(std::span<const CopyRange> ranges) {
  bool staging = false, peers = false;
  for (const CopyRange& r : ranges) {
    CHECK_INTERNAL(r.to_offset + r.bytes <= r.to->size() && r.from_offset + r.bytes <= r.from->size());
    const IslandBuffer *to = island_buffer(r.to), *from = island_buffer(r.from);
    CHECK_INTERNAL(from && (!to || &to->state() == state_.get()));
    const bool from_peer = &from->state() != state_.get();
    CHECK_INTERNAL(!from_peer || state_->has_peers);
    staging = staging || !to;
    peers = peers || from_peer;
    std::byte* target = (to ? to->memory().host() : r.to->host()) + r.to_offset;
    const std::byte* source = from->memory().host() + r.from_offset;
    queue_->push([target, source, bytes = r.bytes] { std::memcpy(target, source, bytes); });
    if (to) continue;
    ++state_->n_values_to_staging;
    state_->bytes_to_staging += static_cast<int64_t>(r.bytes);
  }
  ++(staging ? state_->n_copies_to_staging : peers ? state_->n_copies_from_peers : state_->n_copies_within);
}

const OpRecord* inner_record(const OpDesc& op, const Device& device) {
  return static_cast<const IslandDevice&>(device).inner().find(op.op);
}
bool inner_supports(const OpDesc& op, const Device& d) {
  const auto& device = static_cast<const IslandDevice&>(d);
  if (device.state().refuses && device.state().refuses(op)) return false;
  return inner_record(op, device)->supports(op, device.inner());
}
std::unique_ptr<Prepared> inner_prepare(const OpDesc& op, Device& device) {
  return inner_record(op, device)->prepare(op, static_cast<IslandDevice&>(device).inner());
}
// The segment uses the records of the inner device.
void never(const Prepared&, const Launch&, Stream&) { CHECK_INTERNAL(false); }

IslandDevice::IslandDevice(std::string name, std::unique_ptr<Device> inner, State state)
    : name_(std::move(name)), inner_(std::move(inner)), state_(std::move(state)) {
  CHECK_INTERNAL(inner_->is_host());
  for (const OpRecord& record : inner_->operations()) {
    if (!state_->lacks.contains(record.op)) records_.push_back({record.op, inner_supports, inner_prepare, never});
  }
}

std::unique_ptr<Stream> IslandDevice::create_stream() {
  return std::make_unique<IslandStream>(*inner_, state_, queues_);
}

}  // namespace

std::unique_ptr<Device> make_island(std::string name, std::unique_ptr<Device> inner,
                                    std::shared_ptr<IslandState> state) {
  return std::make_unique<IslandDevice>(std::move(name), std::move(inner), std::move(state));
}

}  // namespace infer::test
