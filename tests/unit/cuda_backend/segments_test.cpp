// Segments of the CUDA backend on the stand-in, which refuses in a capture what a GPU's driver refuses there.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <numeric>
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

TEST_CASE("a grid has room for more vectors of experts than its y dimension") {
  constexpr int kTokens = 40000, kUsed = 2, kWidth = 8, kCounted = 3;
  const auto device = create_cuda_device("cuda0");
  const auto stream = device->create_stream();
  const TensorDesc x = make_desc(DataType::kF32, {kTokens, kWidth}, RowKind::kTokens);
  const TensorDesc weight = make_desc(DataType::kF32, {2, 1, kWidth});
  const TensorDesc ids = make_desc(DataType::kI32, {kTokens, kUsed}, RowKind::kTokens);
  const TensorDesc out = make_desc(DataType::kF32, {kTokens, kUsed, 1}, RowKind::kTokens);
  const auto filled = [&](const TensorDesc& desc, const auto& values) {
    auto buffer = device->allocate(desc.bytes());
    stream->upload(*buffer, 0, values.data(), sizeof values[0] * values.size());
    return buffer;
  };
  std::vector<float> rows(kCounted * kWidth);
  std::iota(rows.begin(), rows.end(), 1.0f);
  std::vector<float> experts(2 * kWidth, 1.0f);
  std::fill(experts.begin() + kWidth, experts.end(), 2.0f);
  const auto x_memory = filled(x, rows), weights = filled(weight, experts),
             chosen = filled(ids, std::vector<int32_t>{0, 1, 1, 0, 0, 1}), result = device->allocate(out.bytes());
  const StepLayout layout({.tokens = kTokens, .outputs = 1, .sequences = 1});
  const auto step = device->allocate(layout.bytes());
  const std::vector<int32_t> counts = {kCounted, 0, 1, 0};
  stream->upload(*step, 0, counts.data(), sizeof(int32_t) * counts.size());

  const TensorDesc* const inputs[] = {&x, &weight, &ids, nullptr};
  const TensorDesc* const outputs[] = {&out};
  const OpParams none;
  const TensorRef in[] = {{&x, x_memory.get(), 0}, {&weight, weights.get(), 0}, {&ids, chosen.get(), 0}, {}};
  const TensorRef to[] = {{&out, result.get(), 0}};
  BoundNode node;
  node.record = device->find(Op::kMatMulExperts);
  node.launch.op = {Op::kMatMulExperts, &none, inputs, outputs, nullptr};
  node.launch.inputs = in;
  node.launch.outputs = to;
  node.launch.step_layout = &layout;
  node.launch.step_buffer = step.get();
  const auto prepared = node.record->prepare(node.launch.op, *device);
  node.prepared = prepared.get();
  const auto segment = stream->compile({&node, 1});
  stream->run(*segment);
  std::vector<float> found(kCounted * kUsed);
  stream->download(found.data(), *result, 0, sizeof(float) * found.size());
  stream->synchronize();
  CHECK(found == std::vector<float>{36, 72, 200, 100, 164, 328});
}
