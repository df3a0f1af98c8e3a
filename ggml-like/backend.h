// The seam between the tensor library and a backend. A backend is a Device (memory, streams) and one OpRecord for each
// operation it implements; to write one, implement the classes below and name them in backends/registry.cpp.
//
// What crosses: tensor descriptors, buffers, plans' launches, step inputs, events, errors. Everything that can fail for
// lack of memory or because of the device throws Error. Objects are used by one thread at a time; a Device may be
// shared by several streams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ggml-like/op.h"
#include "ggml-like/step_inputs.h"
#include "ggml-like/tensor.h"

namespace infer {

class Device;

// A piece of memory of a device. Freed by its destructor; must not outlive the device.
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

// The keys and values of one layer: `n_blocks` blocks of kBlockTokens tokens, each Device::cache_block_bytes() long.
struct CacheRef {
  const CacheDesc* desc = nullptr;
  Buffer* buffer = nullptr;
  size_t offset = 0;
  int64_t n_blocks = 0;
};

// What an operation is asked to do, without memory: enough to decide support and to prepare.
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

// One execution of one node. Rows beyond the step's counts are padding: they may hold anything and must not be written.
struct Launch {
  OpDesc op;
  std::span<const TensorRef> inputs;
  std::span<const TensorRef> outputs;
  CacheRef cache;
  TensorRef scratch;       // buffer and offset only
  const StepInputs* step;  // host side
  Buffer* step_buffer;     // the same on the device, null for host devices

  template <typename P>
  const P& param() const {
    return op.param<P>();
  }
  // Rows that hold data in a tensor of this launch.
  int64_t rows(const TensorRef& t) const { return step->row_count(t.desc->rows, t.desc->shape[0]); }
};

class Stream;

// One operation of one backend.
struct OpRecord {
  Op op;
  bool (*supports)(const OpDesc& op, const Device& device);
  std::unique_ptr<Prepared> (*prepare)(const OpDesc& op, Device& device);
  void (*launch)(const Prepared& prepared, const Launch& launch, Stream& stream);
};

class Event {
 public:
  virtual ~Event() = default;
};

// A node of a segment, bound to memory.
struct BoundNode {
  const OpRecord* record = nullptr;
  Prepared* prepared = nullptr;
  Launch launch;
  int node = -1;  // index in the graph
};

// An ordered queue of work. Host devices may do the work inside the call.
class Stream {
 public:
  virtual ~Stream() = default;
  // `from` is read before upload() returns; the bytes arrive in their turn, after the work that was queued before.
  virtual void upload(Buffer& to, size_t offset, const void* from, size_t bytes) = 0;
  virtual void download(void* to, const Buffer& from, size_t offset,
                        size_t bytes) = 0;  // `to` is valid after synchronize()
  virtual std::unique_ptr<Event> record() = 0;
  virtual void wait(const Event& event) = 0;
  virtual void synchronize() = 0;
  // Runs the nodes of one segment in order. A backend may record them on the first call with `segment_key` and replay
  // the recording later: everything that changes between steps is in the step inputs.
  virtual void run(uint64_t segment_key, std::span<BoundNode> nodes);

  // Threads of the host that work for the stream, between its runs also for whoever owns it; 1: the caller alone.
  virtual int n_threads() const { return 1; }
  // Calls body(piece, thread) for every piece in [0, n), each once, on these threads (0 .. n_threads() - 1). Returns
  // when all are done; the first exception is thrown again here. Not during run().
  virtual void parallel_for(int64_t n, const std::function<void(int64_t piece, int thread)>& body);
};

struct DeviceMemory {
  uint64_t total = 0;  // bytes
  uint64_t free = 0;
};

// What a device can do at best, per second; 0 where it is not known.
struct MachineLimits {
  double read_bytes = 0;
  double int8_operations = 0;   // multiplications and additions of int8 dot products into int32
  double float_operations = 0;  // of F32
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;         // "cpu", "ref", "cuda0"
  virtual std::string description() const = 0;  // for people: model of the processor, instruction set
  virtual DeviceMemory memory() const = 0;
  // The memory of host devices is addressed directly, and their weights are used where the file is mapped.
  virtual bool is_host() const = 0;
  virtual std::unique_ptr<Buffer> allocate(size_t bytes) = 0;  // 64-byte aligned; Error(kOutOfMemory)
  virtual std::unique_ptr<Stream> create_stream() = 0;
  virtual std::span<const OpRecord> operations() const = 0;
  // Bytes of one block of one layer, in the backend's own layout.
  virtual size_t cache_block_bytes(const CacheDesc& cache) const;
  // Type of keys and values unless the user asks for another.
  virtual DataType default_cache_type() const { return DataType::kF16; }
  // Bytes per second at which this device reads its own memory, measured now by a fixed loop; 0 where it is not known.
  virtual double read_bandwidth() { return 0; }
  // That and the peaks of arithmetic, measured now by fixed loops, on all threads of the device.
  virtual MachineLimits measure_limits() { return {read_bandwidth(), 0, 0}; }

  const OpRecord* find(Op op) const;  // null when the operation is not implemented
  bool supports(const OpDesc& op) const;
};

// Of the host; free is what the kernel believes it can give without swapping.
DeviceMemory host_memory();
// Memory of the host, 64-byte aligned.
std::unique_ptr<Buffer> allocate_host(size_t bytes);
// A view of memory that somebody else owns.
std::unique_ptr<Buffer> wrap_host(std::byte* data, size_t bytes);

}  // namespace infer
