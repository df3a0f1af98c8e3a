#include "backends/cuda/stream.h"

#include <algorithm>
#include <cstring>

#include "ggml-like/error.h"

namespace infer::cuda {
namespace {

constexpr size_t kStagingBytes = 4 << 20;
constexpr size_t kMostStaging = 8;  // pieces for each direction
// Uploads of at least this many bytes are copied to staging memory by several threads.
constexpr size_t kManyBytes = 1 << 20;
constexpr unsigned kMostCopyThreads = 8;

class CudaEvent final : public Event {
 public:
  CudaEvent(const Context& context, cudaStream_t stream) : context_(context) {
    const UseDevice use(context.number);
    cudaEvent_t made = nullptr;
    context.check(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "cudaEventCreate");
    event_.reset(made);
    context.check(cudaEventRecord(made, stream), "cudaEventRecord");
  }
  void wait() const override { context_.check(cudaEventSynchronize(event_.get()), "cudaEventSynchronize"); }
  cudaEvent_t handle() const { return event_.get(); }

 private:
  const Context& context_;
  OwnedEvent event_;
};

// The work of some nodes as a graph.
class CudaSegment final : public Segment {
 public:
  CudaSegment(CudaStream& stream, cudaGraph_t graph) : stream_(stream) {
    cudaGraphExec_t made = nullptr;
    stream.context().check(cudaGraphInstantiate(&made, graph, 0), "cudaGraphInstantiate");
    exec_.reset(made);
  }
  ~CudaSegment() override { cudaStreamSynchronize(stream_.handle()); }
  void launch() { stream_.context().check(cudaGraphLaunch(exec_.get(), stream_.handle()), "cudaGraphLaunch"); }

 private:
  CudaStream& stream_;
  OwnedGraphExec exec_;
};

}  // namespace

CudaStream::CudaStream(Context& context) : context_(context) {
  const UseDevice use(context.number);
  cudaStream_t made = nullptr;
  context.check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "cudaStreamCreate");
  stream_.reset(made);
  context.add(made);
}

CudaStream::~CudaStream() {
  const UseDevice use(context_.number);
  cudaStreamSynchronize(stream_.get());
  context_.remove(stream_.get());
}

void CudaStream::launch(std::span<const BoundNode> nodes) {
  for (const BoundNode& node : nodes) node.record->launch(*node.prepared, node.launch, *this);
}

cudaGraph_t CudaStream::capture(std::span<const BoundNode> nodes) {
  const auto held = context_.hold_streams();
  context_.check(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  // A capture must be ended even if a launch fails.
  const auto end_capture = [&](cudaGraph_t* graph) { return cudaStreamEndCapture(stream_.get(), graph); };
  cudaGraph_t made = nullptr;
  try {
    launch(nodes);
  } catch (...) {
    end_capture(&made);
    const OwnedGraph graph(made);
    cudaGetLastError();
    throw;
  }
  context_.check(end_capture(&made), "cudaStreamEndCapture");
  return made;
}

std::unique_ptr<Segment> CudaStream::compile(std::span<const BoundNode> nodes) {
  const UseDevice use(context_.number);
  is_loading_ = true;
  try {
    launch(nodes);
  } catch (...) {
    is_loading_ = false;
    throw;
  }
  is_loading_ = false;
  const OwnedGraph graph(capture(nodes));
  return std::make_unique<CudaSegment>(*this, graph.get());
}

void CudaStream::run(Segment& segment) {
  const UseDevice use(context_.number);
  static_cast<CudaSegment&>(segment).launch();
}

// Returns the front piece, which has room: the one in use, one whose copies are done, or a new one. Waits for one only
// if there are too many.
CudaStream::Staging& CudaStream::staging_with_room(std::deque<Staging>& ring, Direction direction) {
  if (!ring.empty() && ring.front().used < kStagingBytes) return ring.front();
  // The oldest piece of an upload may be free again; that of a download holds bytes until they are delivered.
  const bool upload = direction == Direction::kUpload;
  const bool reuse = !ring.empty() && upload && cudaEventQuery(ring.back().copied.get()) == cudaSuccess;
  cudaGetLastError();  // cudaErrorNotReady is not a failure
  if (!reuse && ring.size() < kMostStaging) {
    Staging made;
    made.memory = std::make_unique<CudaBuffer>(context_, kStagingBytes, CudaBuffer::Kind::kPinned);
    cudaEvent_t event = nullptr;
    context_.check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
    made.copied.reset(event);
    ring.push_front(std::move(made));
    return ring.front();
  }
  std::rotate(ring.begin(), ring.end() - 1, ring.end());
  if (upload) context_.check(cudaEventSynchronize(ring.front().copied.get()), "cudaEventSynchronize");
  else synchronize();
  ring.front().used = 0;
  return ring.front();
}

HostCopy& CudaStream::copier() {
  const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1u, kMostCopyThreads);
  if (!copier_) copier_ = std::make_unique<HostCopy>(static_cast<int>(threads));
  return *copier_;
}

void CudaStream::upload(Buffer& to, size_t offset, const void* from, size_t bytes) {
  const UseDevice use(context_.number);
  auto& buffer = static_cast<CudaBuffer&>(to);
  CHECK_INTERNAL(offset + bytes <= buffer.size());
  const auto* source = static_cast<const std::byte*>(from);
  for (size_t at = 0; at < bytes;) {
    Staging& staging = staging_with_room(uploads_, Direction::kUpload);
    const size_t n = std::min(bytes - at, kStagingBytes - staging.used);
    std::byte* const piece = staging.memory->data() + staging.used;
    if (n < kManyBytes) std::memcpy(piece, source + at, n);
    else copier().copy(piece, source + at, n);
    context_.check(cudaMemcpyAsync(buffer.data() + offset + at, piece, n, cudaMemcpyHostToDevice, stream_.get()),
                   "cudaMemcpyAsync");
    context_.check(cudaEventRecord(staging.copied.get(), stream_.get()), "cudaEventRecord");
    staging.used = std::min(kStagingBytes, (staging.used + n + 63) / 64 * 64);
    at += n;
  }
}

void CudaStream::download(void* to, const Buffer& from, size_t offset, size_t bytes) {
  const UseDevice use(context_.number);
  const auto& buffer = static_cast<const CudaBuffer&>(from);
  CHECK_INTERNAL(offset + bytes <= buffer.size());
  auto* target = static_cast<std::byte*>(to);
  for (size_t at = 0; at < bytes;) {
    Staging& staging = staging_with_room(downloads_, Direction::kDownload);
    const size_t n = std::min(bytes - at, kStagingBytes - staging.used);
    std::byte* const piece = staging.memory->data() + staging.used;
    context_.check(cudaMemcpyAsync(piece, buffer.data() + offset + at, n, cudaMemcpyDeviceToHost, stream_.get()),
                   "cudaMemcpyAsync");
    deliveries_.push_back({target + at, piece, n});
    staging.used = std::min(kStagingBytes, (staging.used + n + 63) / 64 * 64);
    at += n;
  }
}

// The memory of other devices outlives what this stream reads of it.
void CudaStream::note_reading(std::span<const CudaBuffer* const> peers) {
  if (peers.empty()) return;
  if (!peers_read_) {
    cudaEvent_t made = nullptr;
    context_.check(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "cudaEventCreate");
    peers_read_ = {made, cudaEventDestroy};
  }
  context_.check(cudaEventRecord(peers_read_.get(), stream_.get()), "cudaEventRecord");
  for (const CudaBuffer* buffer : peers) buffer->keep_until(peers_read_);
}

void CudaStream::copy(std::span<const CopyRange> ranges) {
  const UseDevice use(context_.number);
  std::vector<const CudaBuffer*> peers;
  for (const CopyRange& r : ranges) {
    const auto &to = static_cast<const CudaBuffer&>(*r.to), &from = static_cast<const CudaBuffer&>(*r.from);
    if (!to.is_pinned() && !from.is_pinned() && &to.context() != &from.context()) {
      context_.reach(from.context());
      context_.check(cudaMemcpyPeerAsync(to.data() + r.to_offset, to.context().number, from.data() + r.from_offset,
                                         from.context().number, r.bytes, stream_.get()),
                     "cudaMemcpyPeerAsync");
      peers.push_back(&from);
      continue;
    }
    const cudaMemcpyKind kind = to.is_pinned()     ? cudaMemcpyDeviceToHost
                                : from.is_pinned() ? cudaMemcpyHostToDevice
                                                   : cudaMemcpyDeviceToDevice;
    context_.check(cudaMemcpyAsync(to.data() + r.to_offset, from.data() + r.from_offset, r.bytes, kind, stream_.get()),
                   "cudaMemcpyAsync");
  }
  note_reading(peers);
}

std::unique_ptr<Event> CudaStream::record() { return std::make_unique<CudaEvent>(context_, stream_.get()); }

// For events of devices of other kinds, the host waits.
void CudaStream::wait(const Event& event) {
  const UseDevice use(context_.number);
  const auto* mine = dynamic_cast<const CudaEvent*>(&event);
  if (!mine) return event.wait();
  context_.check(cudaStreamWaitEvent(stream_.get(), mine->handle(), 0), "cudaStreamWaitEvent");
}

void CudaStream::synchronize() {
  const UseDevice use(context_.number);
  copier_.reset();  // no idle threads during steps
  context_.check(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
  deliver();
}

void CudaStream::deliver() {
  for (const Delivery& d : deliveries_) std::memcpy(d.to, d.from, d.bytes);
  deliveries_.clear();
  for (std::deque<Staging>* ring : {&uploads_, &downloads_}) {
    for (Staging& staging : *ring) staging.used = 0;
  }
}

}  // namespace infer::cuda
