#include "tests/conformance/harness.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "backends/cpu/cpu_device.h"
#include "backends/registry.h"
#include "ggml-like/error.h"
#include "ggml-like/ref/ref_device.h"
#include "tests/support/skip.h"

namespace infer::test {

std::vector<TestDevice>& test_devices() {
  static std::vector<TestDevice> devices = [] {
    std::vector<TestDevice> all;
    const auto add = [&](std::string name, std::string level, int threads, std::unique_ptr<Device> device) {
      auto stream = device->create_stream();
      all.push_back({std::move(name), std::move(level), threads, std::move(device), std::move(stream)});
    };
    add("ref", "", 1, create_ref_device());
    for (const std::string& level : cpu_levels()) {
      // Where a type has two kernels, one thread runs the first and three run the second.
      for (const int threads : {1, 3}) {
        const auto kernels = threads == 1 ? CpuOptions::Kernels::kDefault : CpuOptions::Kernels::kOther;
        add(concat("cpu:", level, "/", threads), level, threads,
            create_cpu_device({.n_threads = threads, .level = level, .kernels = kernels}));
      }
    }
    if (!blas_description().empty()) {
      DeviceOptions options;
      options.n_threads = 2;
      options.blas = true;
      options.blas_min_rows = 2;  // few cases have enough rows to be worth it
      add("blas", "", 1, open_device("cpu", options));
    }
    for (const std::string& name : device_names()) {
      if (name == "cpu" || name == "ref") continue;
      try {
        add(name, "", 1, open_device(name));
      } catch (const Error& error) {  // it lacks what INFER_VULKAN_KERNELS asks for
        if (error.code() != ErrorCode::kUnsupported || std::getenv("INFER_REQUIRE")) throw;
        skip("conformance on " + name, error.what());
      }
    }
    return all;
  }();
  return devices;
}

GuardedMemory::GuardedMemory(size_t bytes, size_t alignment) : bytes_(bytes) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t room = (bytes + alignment + page - 1) / page * page;
  mapped_ = room + page;
  void* p = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) throw Error(ErrorCode::kOutOfMemory, "[test] no memory");
  pages_ = static_cast<std::byte*>(p);
  CHECK_INTERNAL(mprotect(pages_ + room, page, PROT_NONE) == 0);
  std::memset(pages_, static_cast<int>(kSentinel), room);
  const size_t begin = (room - bytes) / alignment * alignment;
  data_ = pages_ + begin;
  tail_ = room - begin - bytes;
}

GuardedMemory::~GuardedMemory() { munmap(pages_, mapped_); }

bool GuardedMemory::sentinel_intact() const {
  const auto intact = [](std::byte b) { return b == kSentinel; };
  return std::all_of(pages_, data_, intact) && std::all_of(data_ + bytes_, data_ + bytes_ + tail_, intact);
}

TestCache::TestCache(TestDevice& device, const CacheDesc& desc, int64_t n_blocks, std::byte fill) {
  const size_t bytes = device.device->cache_block_bytes(desc) * static_cast<size_t>(n_blocks);
  buffer = device.device->allocate(bytes);
  const std::vector<std::byte> content(bytes, fill);
  device.stream->upload(*buffer, 0, content.data(), bytes);
  device.stream->synchronize();
  ref = {&desc, buffer.get(), 0, n_blocks};
}

std::vector<std::byte> TestCache::download(TestDevice& device) const {
  std::vector<std::byte> bytes(buffer->size());
  device.stream->download(bytes.data(), *buffer, 0, bytes.size());
  device.stream->synchronize();
  return bytes;
}

namespace {

size_t alignment_of(DataType type) { return type == DataType::kF32 || type == DataType::kI32 ? 4 : 2; }

// The devices of a plan for `device`: a host device comes first in every plan.
struct PlanDevices {
  std::unique_ptr<Device> host;
  std::vector<Device*> devices;
  explicit PlanDevices(TestDevice& t) {
    if (!t.device->is_host()) {
      host = create_ref_device();
      devices.push_back(host.get());
    }
    devices.push_back(t.device.get());
  }
};

// The leaves as weights of a graph, in guarded memory, and their copies where the device has memory of its own.
class LeafWeights {
 public:
  LeafWeights(const std::vector<Leaf>& leaves, TestDevice& t, bool on_host) : leaves_(leaves), weights_(leaves.size()) {
    for (size_t i = 0; i < leaves.size(); ++i) {
      const Leaf& leaf = leaves[i];
      memory_.push_back(std::make_unique<GuardedMemory>(leaf.data.size(), alignment_of(leaf.desc.type)));
      std::memcpy(memory_.back()->data(), leaf.data.data(), leaf.data.size());
      weights_[i] = {concat("leaf", i), leaf.desc, memory_.back()->data()};
      if (on_host) continue;
      uploaded_.push_back(t.device->allocate(leaf.data.size()));
      t.stream->upload(*uploaded_.back(), 0, leaf.data.data(), leaf.data.size());
    }
  }
  const std::vector<Weight>& weights() const { return weights_; }
  BufferPlace place(const Weight& weight) const {
    return {uploaded_[static_cast<size_t>(&weight - weights_.data())].get(), 0};
  }
  // The rule that the run broke; "" for none.
  std::string broken() const {
    for (size_t i = 0; i < leaves_.size(); ++i) {
      const std::vector<std::byte>& data = leaves_[i].data;
      if (memory_[i]->sentinel_intact() && std::memcmp(memory_[i]->data(), data.data(), data.size()) == 0) continue;
      return concat("input ", i, " or the memory round it was written");
    }
    return "";
  }

 private:
  const std::vector<Leaf>& leaves_;
  std::vector<Weight> weights_;
  std::vector<std::unique_ptr<GuardedMemory>> memory_;
  std::vector<std::unique_ptr<Buffer>> uploaded_;
};

// Up to where an arena holds outputs; other values and scratch memory come after that.
size_t end_of_outputs(const Plan& plan, const std::vector<ValueId>& wanted) {
  size_t end = 0;
  for (const ValueId id : wanted) end = std::max(end, plan.output(id).offset + plan.output(id).desc->bytes());
  return end;
}

// A device's buffer of at least `bytes` sentinels. Where there is a cache, its steps share one, as in the program, and
// a later step finds what earlier ones left after the outputs: memory for scores may be large, and filling it slow.
Buffer& arena_of(TestDevice& t, size_t bytes, TestCache* cache, std::unique_ptr<Buffer>& own) {
  std::unique_ptr<Buffer>& arena = cache ? cache->arena : own;
  if (arena && arena->size() >= bytes) return *arena;
  static std::vector<std::byte> sentinels;
  if (sentinels.size() < bytes) sentinels.resize(bytes, kSentinel);
  arena = t.device->allocate(bytes);
  t.stream->upload(*arena, 0, sentinels.data(), bytes);
  t.stream->synchronize();
  return *arena;
}

// What a plan runs with on `t`, the last of its devices. memory() is the arena on the host; elsewhere a copy of its
// bytes up to the end of the outputs, before and after run().
class PlanRun {
 public:
  PlanRun(Plan& plan, const std::vector<ValueId>& wanted, TestDevice& t, size_t n_devices, const StepInputs& step,
          TestCache* cache)
      : plan_(plan), t_(t), step_(step) {
    const size_t at = n_devices - 1, n_bytes = plan.arena_bytes(static_cast<int>(at));
    std::vector<PlanBinding> bindings(n_devices);
    if (at == 0) {
      memory_ = std::make_unique<GuardedMemory>(n_bytes, kAlignment);
      own_ = wrap_host(memory_->data(), n_bytes);
      bindings[at] = {t.stream.get(), own_.get()};
      plan.bind(bindings, step.layout());
      return;
    }
    arena_ = &arena_of(t, n_bytes, cache, own_);
    step_buffer_ = t.device->allocate(step.layout().bytes());
    staging_ = t.device->allocate_staging(plan.staging_bytes(static_cast<int>(at)));
    bindings[at] = {t.stream.get(), arena_, step_buffer_.get(), staging_.get()};
    plan.bind(bindings, step.layout());
    memory_ = std::make_unique<GuardedMemory>(end_of_outputs(plan, wanted), kAlignment);
    t.stream->upload(*arena_, 0, memory_->data(), memory_->size());
  }
  void run() {
    plan_.run(step_);
    if (!arena_) return;
    t_.stream->download(memory_->data(), *arena_, 0, memory_->size());
    t_.stream->synchronize();
  }
  const GuardedMemory& memory() const { return *memory_; }

 private:
  static constexpr size_t kAlignment = 64;
  Plan& plan_;
  TestDevice& t_;
  const StepInputs& step_;
  std::unique_ptr<GuardedMemory> memory_;
  std::unique_ptr<Buffer> own_, step_buffer_, staging_;
  Buffer* arena_ = nullptr;  // of a device with memory of its own
};

// The outputs of a plan that has run. Sets `broken` if it wrote to memory that belongs to nobody before the end of the
// last output.
void take_outputs(const Plan& plan, const std::vector<ValueId>& wanted, const StepInputs& step,
                  const GuardedMemory& memory, RunResult& result) {
  std::vector<bool> may_change(end_of_outputs(plan, wanted));
  for (const ValueId id : wanted) {
    const TensorRef ref = plan.output(id);
    Output out;
    out.type = ref.desc->type;
    out.rows = step.view().row_count(ref.desc->rows, ref.desc->shape[0]);
    out.row_elements = ref.desc->shape.row_elements();
    out.data.resize(static_cast<size_t>(out.elements()) * 4);
    std::memcpy(out.data.data(), plan.output_rows(id), out.data.size());
    std::fill_n(may_change.begin() + static_cast<ptrdiff_t>(ref.offset), out.data.size(), true);
    result.outputs.push_back(std::move(out));
  }
  for (size_t i = 0; i < may_change.size(); ++i) {
    if (may_change[i] || memory.data()[i] == kSentinel) continue;
    result.broken = concat("byte ", i, " of the outputs' memory holds no row with data and was written");
    break;
  }
  if (!memory.sentinel_intact()) result.broken = "memory before the arena was written";
}

}  // namespace

RunResult run_graph(TestDevice& t, Graph graph, const BuildGraph& build, const std::vector<Leaf>& leaves,
                    const StepInputs& step, TestCache* cache) {
  RunResult result;
  PlanDevices on(t);
  const int at = static_cast<int>(on.devices.size()) - 1;
  const LeafWeights weights(leaves, t, at == 0);
  const std::vector<ValueId> wanted = build(graph, weights.weights());
  for (const ValueId id : wanted) graph.mark_output(id);
  PlanOptions options;
  options.devices = on.devices;
  options.layer_device = [&](int) { return at; };
  options.weight = [&](const Weight& weight, int) { return weights.place(weight); };
  options.cache = [&](const CacheDesc&) { return cache->ref; };
  options.strict = true;
  std::unique_ptr<Plan> plan;
  try {
    plan = std::make_unique<Plan>(std::move(graph), std::move(options));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupported) throw;
    result.supported = false;
    return result;
  }
  PlanRun running(*plan, wanted, t, on.devices.size(), step, cache);
  running.run();
  take_outputs(*plan, wanted, step, running.memory(), result);
  if (const std::string broken = weights.broken(); !broken.empty()) result.broken = broken;
  return result;
}

}  // namespace infer::test
