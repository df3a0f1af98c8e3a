// Runs small graphs on a device with sentinels round everything: inputs end at an unreadable page, outputs are filled
// with NaN before, and every byte that the operation must not write is looked at afterwards. Inputs are leaves of the
// graph, as weights are, so a case decides type, stride and row kind of each.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ggml-like/backend.h"
#include "ggml-like/graph.h"
#include "ggml-like/plan.h"

namespace infer::test {

// A device under test with its stream.
struct TestDevice {
  std::string name;   // "ref", "cpu:avx2/3" (level and threads), "cuda0"
  std::string level;  // of the CPU, "" for others
  int threads = 1;
  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;

  bool is_cpu() const { return !level.empty(); }
};

// ref first, then the CPU at every level that runs here with one and with three threads, then the CPU with OpenBLAS,
// then accelerators.
std::vector<TestDevice>& test_devices();

// Memory whose last byte is the last of its page, followed by a page that cannot be touched; what lies before it on its
// own pages is a sentinel. `alignment` is a power of two: the end is rounded down to it.
class GuardedMemory {
 public:
  GuardedMemory(size_t bytes, size_t alignment);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  std::byte* data() const { return data_; }
  size_t size() const { return bytes_; }
  bool sentinel_intact() const;

 private:
  std::byte* pages_ = nullptr;
  size_t mapped_, bytes_, tail_;
  std::byte* data_;
};

inline constexpr std::byte kSentinel{0xff};  // floats become NaN, indices -1

// Padding rows of float inputs: a NaN other than the sentinel, so that a result computed from it shows in an output.
inline constexpr uint32_t kPaddingBits = 0x7fc12345u;

// An input of a case. Rows of a kTokens or kOutputs leaf beyond those with data hold kPaddingBits.
struct Leaf {
  TensorDesc desc;
  std::vector<std::byte> data;  // [desc.bytes()]

  template <typename T>
  const T* as() const {
    return reinterpret_cast<const T*>(data.data());
  }
  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(data.data());
  }
};

// The rows of an output that hold data.
struct Output {
  DataType type = DataType::kF32;
  int64_t rows = 0, row_elements = 0;
  std::vector<std::byte> data;

  const float* floats() const { return reinterpret_cast<const float*>(data.data()); }
  const int32_t* ints() const { return reinterpret_cast<const int32_t*>(data.data()); }
  int64_t elements() const { return rows * row_elements; }
};

// Adds nodes to the graph and returns the values to read; weights[i] belongs to leaf i.
using BuildGraph = std::function<std::vector<ValueId>(Graph&, const std::vector<Weight>&)>;

// The keys and values of one layer on a device, filled with one byte.
struct TestCache {
  CacheRef ref;
  std::unique_ptr<Buffer> buffer;
  TestCache(TestDevice& device, const CacheDesc& desc, int64_t n_blocks, std::byte fill = kSentinel);
  std::vector<std::byte> download(TestDevice& device) const;
};

struct RunResult {
  bool supported = true;
  std::string broken;  // a rule that the run broke, "" if none
  std::vector<Output> outputs;
};

RunResult run_graph(TestDevice& device, Graph graph, const BuildGraph& build, const std::vector<Leaf>& leaves,
                    const StepInputs& step, TestCache* cache = nullptr);

}  // namespace infer::test
