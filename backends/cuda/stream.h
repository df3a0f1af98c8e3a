// A stream of work on a CUDA device. Segments are captured once into a CUDA graph and launched in every step. Transfers
// between device and host memory go through pinned staging memory, without waiting.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "backends/cuda/host_copy.h"
#include "backends/cuda/memory.h"
#include "ggml-like/backend.h"

namespace infer::cuda {

class CudaStream final : public Stream {
 public:
  explicit CudaStream(Context& context);
  ~CudaStream() override;

  std::unique_ptr<Segment> compile(std::span<const BoundNode> nodes) override;
  void run(Segment& segment) override;
  void upload(Buffer& to, size_t offset, const void* from, size_t bytes) override;
  void download(void* to, const Buffer& from, size_t offset, size_t bytes) override;
  void copy(std::span<const CopyRange> ranges) override;
  std::unique_ptr<Event> record() override;
  void wait(const Event& event) override;
  void synchronize() override;

  Context& context() const { return context_; }
  cudaStream_t handle() const { return stream_.get(); }
  // Whether launches only load their kernels: compile() does that before it captures them, since loading a kernel
  // allocates and may wait, which a capture does not allow with every driver.
  bool is_loading() const { return is_loading_; }

 private:
  // A piece of pinned memory that is filled from its beginning and reused once its copies are done.
  struct Staging {
    std::unique_ptr<CudaBuffer> memory;
    OwnedEvent copied;
    size_t used = 0;
  };
  // Bytes of a download to be copied when the device has written them.
  struct Delivery {
    void* to;
    const std::byte* from;
    size_t bytes;
  };
  enum class Direction { kUpload, kDownload };

  Staging& staging_with_room(std::deque<Staging>& ring, Direction direction);
  HostCopy& copier();
  void deliver();
  void launch(std::span<const BoundNode> nodes);
  cudaGraph_t capture(std::span<const BoundNode> nodes);
  void note_reading(std::span<const CudaBuffer* const> peers);

  Context& context_;
  OwnedStream stream_;
  bool is_loading_ = false;
  std::shared_ptr<CUevent_st> peers_read_;   // behind the last copy from another device; null: there was none
  std::deque<Staging> uploads_, downloads_;  // the one in use comes first
  std::vector<Delivery> deliveries_;
  std::unique_ptr<HostCopy> copier_;  // for weights; null between uploads of many bytes
};

inline CudaStream& cuda_stream(Stream& stream) { return static_cast<CudaStream&>(stream); }

}  // namespace infer::cuda
