// Segments of the CUDA backend on the stand-in, which refuses in a capture what a GPU's driver refuses there.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "backends/cuda/cuda_device.h"
#include "backends/cuda/stream.h"

using namespace infer;

namespace {

// A node whose launch calls a function.
struct CallingNode final : Prepared {
  explicit CallingNode(std::function<void(cuda::CudaStream&)> function) : call(std::move(function)) {}
  static void launch(const Prepared& prepared, const Launch&, Stream& stream) {
    static_cast<const CallingNode&>(prepared).call(cuda::cuda_stream(stream));
  }
  std::unique_ptr<Segment> compile(Stream& stream) const {
    static constexpr OpRecord kRecord = {Op::kScale, nullptr, nullptr, launch};
    BoundNode node;
    node.record = &kRecord;
    node.prepared = this;
    return stream.compile({&node, 1});
  }
  std::function<void(cuda::CudaStream&)> call;
};

}  // namespace

TEST_CASE("a segment's kernels are loaded before they are captured") {
  const auto device = create_cuda_device("cuda0");
  const auto stream = device->create_stream();
  std::vector<bool> loading;
  const CallingNode node([&](cuda::CudaStream& s) { loading.push_back(s.is_loading()); });
  const auto segment = node.compile(*stream);
  CHECK(loading == std::vector<bool>{true, false});
  const CallingNode failing([&](cuda::CudaStream&) { throw std::runtime_error("no"); });
  CHECK_THROWS(failing.compile(*stream));
  loading.clear();
  const auto again = node.compile(*stream);
  CHECK(loading == std::vector<bool>{true, false});
}

TEST_CASE("memory that another thread frees during a capture stays out of the graph") {
  const auto device = create_cuda_device("cuda0");
  const auto stream = device->create_stream();
  std::unique_ptr<Buffer> memory = device->allocate(64), staging = device->allocate_staging(64);
  std::atomic<bool> started = false;
  std::thread thread;
  const CallingNode node([&](cuda::CudaStream& s) {
    if (s.is_loading()) return;
    thread = std::thread([&] {
      started = true;
      memory.reset();
      staging.reset();
    });
    while (!started) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // enough for the thread to do harm, if it can
  });
  CHECK_NOTHROW(node.compile(*stream));
  thread.join();
}

TEST_CASE("staging memory may go away while queued copies use it") {
  const auto device = create_cuda_device("cuda0");
  const auto stream = device->create_stream();
  const auto target = device->allocate(64);
  {
    const auto staging = device->allocate_staging(64);
    std::memset(staging->host(), 'a', 64);
    const CopyRange range = {target.get(), 0, staging.get(), 0, 64};
    stream->copy({&range, 1});
  }
  std::vector<char> found(64);
  stream->download(found.data(), *target, 0, found.size());
  stream->synchronize();
  CHECK(found == std::vector<char>(64, 'a'));
}

TEST_CASE("a device's memory may go away while another device copies from it") {
  const auto first = create_cuda_device("cuda0"), second = create_cuda_device("cuda1");
  const auto from = first->create_stream(), to = second->create_stream();
  const std::vector<char> expected(1 << 16, 'b'), zeros(1 << 16);
  const auto target = second->allocate(expected.size());
  {
    const auto source = first->allocate(expected.size());
    from->upload(*source, 0, expected.data(), expected.size());
    to->wait(*from->record());
    const CopyRange range = {target.get(), 0, source.get(), 0, expected.size()};
    to->copy({&range, 1});
  }
  const auto other = first->allocate(expected.size());  // may be the same memory
  from->upload(*other, 0, zeros.data(), zeros.size());
  from->synchronize();
  std::vector<char> found(expected.size());
  to->download(found.data(), *target, 0, found.size());
  to->synchronize();
  CHECK(found == expected);
}
