#include "tests/support/island_device.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <exception>
#include <thread>
#include <vector>

#include "ggml-like/error.h"

namespace infer::test {
namespace {

using State = std::shared_ptr<IslandState>;

class IslandBuffer final : public Buffer {
 public:
  IslandBuffer(size_t bytes, State state) : state_(std::move(state)), memory_(allocate_host(bytes)) {
    ++state_->live_buffers;
    state_->used += bytes;
    state_->most_used = std::max(state_->most_used.load(), state_->used.load());
  }
  ~IslandBuffer() override {
    --state_->live_buffers;
    state_->used -= memory_->size();
  }
  size_t size() const override { return memory_->size(); }
  std::byte* host() const override { return nullptr; }
  Buffer& memory() const { return *memory_; }

 private:
  State state_;
  std::unique_ptr<Buffer> memory_;
};

Buffer* memory_of(Buffer* buffer) { return buffer ? &static_cast<IslandBuffer*>(buffer)->memory() : nullptr; }

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
    return std::make_unique<IslandBuffer>(bytes, state_);
  }
  std::unique_ptr<Stream> create_stream() override;
  std::span<const OpRecord> operations() const override { return records_; }
  size_t cache_block_bytes(const CacheDesc& cache) const override { return inner_->cache_block_bytes(cache); }
  DataType default_cache_type() const override { return inner_->default_cache_type(); }
  Device& inner() const { return *inner_; }

 private:
  const std::string name_;
  const std::unique_ptr<Device> inner_;
  const State state_;
  std::vector<OpRecord> records_;
};

// Pointers of a launch, to memory that the kernels can address.
class Shown {
 public:
  explicit Shown(const BoundNode& node, const StepInputs& step) : launch(node.launch) {
    inputs_.assign(launch.inputs.begin(), launch.inputs.end());
    outputs_.assign(launch.outputs.begin(), launch.outputs.end());
    for (TensorRef& t : inputs_) t.buffer = memory_of(t.buffer);
    for (TensorRef& t : outputs_) t.buffer = memory_of(t.buffer);
    launch.inputs = inputs_;
    launch.outputs = outputs_;
    launch.cache.buffer = memory_of(launch.cache.buffer);
    launch.scratch.buffer = memory_of(launch.scratch.buffer);
    launch.step = &step;
  }
  Shown(const Shown&) = delete;
  Launch launch;

 private:
  std::vector<TensorRef> inputs_, outputs_;
};

class IslandStream final : public Stream {
 public:
  IslandStream(Device& inner, State state)
      : inner_(inner), state_(std::move(state)), stream_(inner.create_stream()), worker_([this] { work(); }) {}
  ~IslandStream() override {
    {
      const std::lock_guard lock(state_->mutex);
      ending_ = true;
      state_->held = false;
    }
    state_->changed.notify_all();
    worker_.join();
  }

  void upload(Buffer& to, size_t offset, const void* from, size_t bytes) override {
    ++state_->n_copies_in;
    CHECK_INTERNAL(offset + bytes <= to.size());
    const auto* first = static_cast<const std::byte*>(from);
    auto data = std::make_shared<std::vector<std::byte>>(first, first + bytes);
    Buffer* target = memory_of(&to);
    push([=] { std::memcpy(target->host() + offset, data->data(), data->size()); });
  }
  void download(void* to, const Buffer& from, size_t offset, size_t bytes) override {
    ++state_->n_copies_out;
    CHECK_INTERNAL(offset + bytes <= from.size());
    Buffer* source = memory_of(const_cast<Buffer*>(&from));
    push([=] { std::memcpy(to, source->host() + offset, bytes); });
  }
  std::unique_ptr<Event> record() override { return std::make_unique<Event>(); }
  void wait(const Event&) override {}

  void synchronize() override {
    std::unique_lock lock(state_->mutex);
    if (!jobs_.empty() && state_->held) {
      ++state_->waits_while_held;
      state_->held = false;
      state_->changed.notify_all();
    }
    state_->changed.wait(lock, [&] { return jobs_.empty(); });
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

  void run(uint64_t, std::span<BoundNode> nodes) override {
    if (nodes.empty()) return;
    const std::vector<BoundNode> bound(nodes.begin(), nodes.end());
    const auto step = std::make_shared<const StepInputs>(*nodes[0].launch.step);
    push([this, bound, step] {
      const Buffer* inputs = memory_of(bound[0].launch.step_buffer);
      if (!inputs || std::memcmp(inputs->host(), step->raw().data(), step->raw().size_bytes()) != 0) {
        ++state_->stale_inputs;
      }
      for (const BoundNode& node : bound) {
        const Shown shown(node, *step);
        inner_.find(node.record->op)->launch(*node.prepared, shown.launch, *stream_);
      }
    });
  }

 private:
  using Job = std::function<void()>;

  void push(Job job) {
    {
      const std::lock_guard lock(state_->mutex);
      jobs_.push_back(std::move(job));
    }
    state_->changed.notify_all();
  }

  void work() {
    std::unique_lock lock(state_->mutex);
    for (;;) {
      state_->changed.wait(lock, [&] { return ending_ || (!jobs_.empty() && !state_->held); });
      if (jobs_.empty()) return;  // and ending
      const Job& job = jobs_.front();
      lock.unlock();
      try {
        job();
      } catch (...) {
        failure_ = std::current_exception();
      }
      lock.lock();
      jobs_.pop_front();
      state_->changed.notify_all();
    }
  }

  Device& inner_;
  State state_;
  std::unique_ptr<Stream> stream_;
  std::deque<Job> jobs_;  // guarded by the state's mutex; the first is under way
  bool ending_ = false;
  std::exception_ptr failure_;
  std::thread worker_;  // last: it uses all of the above
};

const OpRecord* inner_record(const OpDesc& op, const Device& device) {
  return static_cast<const IslandDevice&>(device).inner().find(op.op);
}
bool inner_supports(const OpDesc& op, const Device& device) {
  return inner_record(op, device)->supports(op, static_cast<const IslandDevice&>(device).inner());
}
std::unique_ptr<Prepared> inner_prepare(const OpDesc& op, Device& device) {
  return inner_record(op, device)->prepare(op, static_cast<IslandDevice&>(device).inner());
}
// The stream does what a launch would.
void never(const Prepared&, const Launch&, Stream&) { CHECK_INTERNAL(false); }

IslandDevice::IslandDevice(std::string name, std::unique_ptr<Device> inner, State state)
    : name_(std::move(name)), inner_(std::move(inner)), state_(std::move(state)) {
  CHECK_INTERNAL(inner_->is_host());
  for (const OpRecord& record : inner_->operations()) {
    if (!state_->lacks.contains(record.op)) records_.push_back({record.op, inner_supports, inner_prepare, never});
  }
}

std::unique_ptr<Stream> IslandDevice::create_stream() { return std::make_unique<IslandStream>(*inner_, state_); }

}  // namespace

void IslandState::hold() {
  const std::lock_guard lock(mutex);
  held = true;
}

bool IslandState::release() {
  const std::lock_guard lock(mutex);
  changed.notify_all();
  return std::exchange(held, false);
}

std::unique_ptr<Device> make_island(std::string name, std::unique_ptr<Device> inner,
                                    std::shared_ptr<IslandState> state) {
  return std::make_unique<IslandDevice>(std::move(name), std::move(inner), std::move(state));
}

}  // namespace infer::test
