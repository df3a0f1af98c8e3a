// The seam between the tensor library and a backend. A backend implements Device, Buffer, Stream, Event and Segment for
// one kind of hardware, and one OpRecord for each operation it has; backends/registry.cpp names it. A device that
// computes on the host uses HostStream, so that only its kernels are left to write.
//
// A plan (plan.h) uses a device like this:
//   once per bucket  prepare() for every node; compile() for every run of consecutive nodes on the device: a segment
//   once per step    upload() of the step's inputs, run() of the segments, copy() where values leave the device
// Everything a segment is compiled from stays the same between steps: addresses, shapes, capacities. Counts, positions,
// lengths and block tables are data, which kernels read from the step buffer. A segment can therefore be a Vulkan
// command buffer or a CUDA graph.
//
// Anything that fails because of the device or for lack of memory throws Error. A stream and its segments are used by
// one thread at a time; a device may have several streams. Buffers and streams must not outlive their device, nor
// segments and events their stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ggml-like/op.h"
#include "ggml-like/step_inputs.h"
#include "ggml-like/tensor.h"

namespace infer {

class Device;
class Stream;

// ---- Memory ----

// A piece of memory: device memory or staging memory. The destructor waits for queued work that uses it.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual size_t size() const = 0;      // bytes
  virtual std::byte* host() const = 0;  // null where the host cannot address it
};

// A tensor in a launch.
struct TensorRef {
  const TensorDesc* desc = nullptr;  // null: an optional input that is absent
  Buffer* buffer = nullptr;
  size_t offset = 0;  // bytes

  explicit operator bool() const { return desc != nullptr; }
  // For backends whose memory the host addresses.
  template <typename T>
  T* data() const {
    return reinterpret_cast<T*>(buffer->host() + offset);
  }
};

// The cache of one layer: `n_blocks` blocks of kBlockTokens tokens or, for recurrent states, `n_blocks` slots. Each is
// Device::cache_block_bytes() long.
struct CacheRef {
  const CacheDesc* desc = nullptr;
  Buffer* buffer = nullptr;
  size_t offset = 0;
  int64_t n_blocks = 0;
};

// ---- Operations ----

// An operation with its types and shapes but without memory: all that supports() and prepare() need.
struct OpDesc {
  Op op;
  const OpParams* params;
  std::span<const TensorDesc* const> inputs;  // null for absent optional inputs
  std::span<const TensorDesc* const> outputs;
  const CacheDesc* cache;  // null where the operation has none

  template <typename P>
  const P& param() const {
    return std::get<P>(*params);
  }
};

// What prepare() chose for one node: a kernel, constants, pipelines. Lives as long as the plan.
class Prepared {
 public:
  virtual ~Prepared() = default;
  size_t scratch_bytes = 0;  // memory the launch needs; the plan provides it, aligned to 64, shared between nodes
};

// A node and the memory it works on. The first dimension of a shape is a capacity, the plan's bucket. How many rows
// hold data is in the step buffer; the other rows are padding, which may hold anything and must not be written.
struct Launch {
  OpDesc op;
  std::span<const TensorRef> inputs;
  std::span<const TensorRef> outputs;
  CacheRef cache;
  TensorRef scratch;                        // buffer and offset only
  const StepLayout* step_layout = nullptr;  // of the step buffer
  Buffer* step_buffer = nullptr;            // the step's inputs in the device's memory; null on host devices

  template <typename P>
  const P& param() const {
    return op.param<P>();
  }
};

// A launch of a kernel that runs on the host. Only these can read the counts of the step.
struct HostLaunch : Launch {
  const StepView* step = nullptr;
  // Rows that hold data in a tensor of this launch.
  int64_t rows(const TensorRef& t) const { return step->row_count(t.desc->rows, t.desc->shape[0]); }
  // The token of the step that row i of a tensor belongs to. REQUIRES: the rows are tokens or outputs.
  int64_t token_row(const TensorRef& t, int64_t i) const {
    return t.desc->rows == RowKind::kTokens ? i : step->output_rows()[static_cast<size_t>(i)];
  }
};

// One operation of one backend.
struct OpRecord {
  Op op;
  bool (*supports)(const OpDesc& op, const Device& device);
  std::unique_ptr<Prepared> (*prepare)(const OpDesc& op, Device& device);
  // Called by the backend's own streams, when a segment is compiled or, by HostStream, each time it runs.
  void (*launch)(const Prepared& prepared, const Launch& launch, Stream& stream);
};

// Concatenates the records of a backend's files, for Device::operations().
std::vector<OpRecord> all_records(std::initializer_list<std::span<const OpRecord>> files);

// OpRecord::launch for a host kernel. REQUIRES that only a HostStream launches it.
template <void (*kKernel)(const Prepared&, const HostLaunch&, Stream&)>
void launch_on_host(const Prepared& prepared, const Launch& launch, Stream& stream) {
  kKernel(prepared, static_cast<const HostLaunch&>(launch), stream);
}

// A node of a segment, bound to memory.
struct BoundNode {
  const OpRecord* record = nullptr;
  const Prepared* prepared = nullptr;
  Launch launch;
};

// ---- Work ----

// Nodes compiled for one stream. May be destroyed while it runs: the destructor waits.
class Segment {
 public:
  virtual ~Segment() = default;
};

// A place in a stream's queue.
class Event {
 public:
  virtual ~Event() = default;
  virtual void wait() const = 0;  // the host waits until all work before the event is done
};

// One range of Stream::copy(). No range written by a call overlaps another range of that call.
struct CopyRange {
  Buffer* to = nullptr;
  size_t to_offset = 0;  // bytes, as below
  const Buffer* from = nullptr;
  size_t from_offset = 0;
  size_t bytes = 0;
};

// An ordered queue of work; each piece sees what the pieces before it wrote. The host waits only where stated below.
class Stream {
 public:
  virtual ~Stream() = default;

  // Compiles nodes that run in this order. `nodes` may go away after the call; what they point to outlives the segment.
  virtual std::unique_ptr<Segment> compile(std::span<const BoundNode> nodes) = 0;
  // Queues a segment. It may be queued again before it has finished.
  virtual void run(Segment& segment) = 0;

  // Copies from any host memory, which is read before upload() returns; the bytes travel through pinned memory of the
  // stream's own. The host waits for earlier uploads only when tens of megabytes of them are queued.
  virtual void upload(Buffer& to, size_t offset, const void* from, size_t bytes) = 0;
  // Copies to any host memory, whose content is valid after synchronize().
  virtual void download(void* to, const Buffer& from, size_t offset, size_t bytes) = 0;
  // Copies within the device's memory, to its staging memory, and from devices that it can_copy_from(), all ranges as
  // one transfer. Staging memory may be read after waiting for a later event, or after synchronize().
  virtual void copy(std::span<const CopyRange> ranges) = 0;

  virtual std::unique_ptr<Event> record() = 0;
  virtual void wait(const Event& event) = 0;  // work queued from now on starts after the event of another stream
  virtual void synchronize() = 0;             // the host waits until everything queued is done

  // Host threads of the stream, which its owner may use too between runs; 1: only the calling thread.
  virtual int n_threads() const { return 1; }
  // Calls body(piece, thread) for every piece in [0, n), each once, on these threads (0 .. n_threads() - 1). Returns
  // when all are done and rethrows the first exception. Must not be called during run().
  virtual void parallel_for(int64_t n, const std::function<void(int64_t piece, int thread)>& body);
};

// A stream of a host device. Every call does its work before it returns, so there is nothing to wait for.
class HostStream : public Stream {
 public:
  // Sets the step for the next run(). REQUIRED before run(); what it points to must outlive that run.
  void set_step(const StepView& step) { step_ = step; }

  std::unique_ptr<Segment> compile(std::span<const BoundNode> nodes) override;
  void run(Segment& segment) override;
  void upload(Buffer& to, size_t offset, const void* from, size_t bytes) override;
  void download(void* to, const Buffer& from, size_t offset, size_t bytes) override;
  void copy(std::span<const CopyRange> ranges) override;
  std::unique_ptr<Event> record() override;
  void wait(const Event& event) override { event.wait(); }
  void synchronize() override {}

 protected:
  struct Node {
    const OpRecord* record;
    const Prepared* prepared;
    HostLaunch launch;
  };
  // Launches the nodes of a segment in order.
  virtual void run_nodes(std::span<const Node> nodes, const StepView& step);

 private:
  class NodeList;
  StepView step_;
};

// ---- Devices ----

struct DeviceMemory {
  uint64_t total = 0;  // bytes
  uint64_t free = 0;
};

// Peak rates of a device per second; 0 where unknown.
struct MachineLimits {
  double read_bytes = 0;
  // Multiplications and additions in matmuls: as int8 dot products with quantized weights, as F32 with float weights.
  // On a device with matrix units, both rates are those of fp16 matrices.
  double int8_operations = 0;
  double float_operations = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;         // "cpu", "ref", "cuda0"
  virtual std::string description() const = 0;  // for display: processor model, instruction set
  virtual DeviceMemory memory() const = 0;
  // Whether it computes on the host. If so, its streams are HostStreams, its kernels take a HostLaunch, and weights are
  // used directly from the mapped file.
  virtual bool is_host() const = 0;
  virtual std::unique_ptr<Buffer> allocate(size_t bytes) = 0;  // 64-byte aligned; Error(kOutOfMemory)
  // Pinned host memory that the device's streams copy to; stays mapped while it exists, 64-byte aligned.
  // Error(kOutOfMemory).
  virtual std::unique_ptr<Buffer> allocate_staging(size_t bytes) = 0;
  // Whether this device's streams can copy from the memory of `other`.
  virtual bool can_copy_from(const Device& other) const { return &other == this; }
  virtual std::unique_ptr<Stream> create_stream() = 0;
  virtual std::span<const OpRecord> operations() const = 0;
  // Bytes of one layer's block in the backend's own layout, or of one slot of recurrent state.
  virtual size_t cache_block_bytes(const CacheDesc& cache) const;
  // Whether this device holds a layer's cache. False for recurrent states, latent caches and caches of sparse attention
  // if it lacks kernels for them: they then stay in host memory, and the host runs their operations. The token ids that
  // ngram_embed remembers and its table are always in host memory.
  bool keeps(const CacheDesc& cache) const;
  // Type of keys and values unless the user asks for another.
  virtual DataType default_cache_type() const { return DataType::kF16; }
  // Bytes per second at which this device reads its own memory, measured now by a fixed loop; 0 where unknown.
  virtual double read_bandwidth() { return 0; }
  // The read bandwidth and the peak arithmetic rates, measured now by fixed loops on all threads of the device.
  virtual MachineLimits measure_limits() { return {read_bandwidth(), 0, 0}; }

  const OpRecord* find(Op op) const;  // null when the operation is not implemented
  bool supports(const OpDesc& op) const;
};

// Host memory that this process may use; `free` is what the kernel estimates it can give without swapping.
DeviceMemory host_memory();
// Memory of the host, 64-byte aligned.
std::unique_ptr<Buffer> allocate_host(size_t bytes);
// A view of memory that the caller owns.
std::unique_ptr<Buffer> wrap_host(std::byte* data, size_t bytes);

}  // namespace infer
