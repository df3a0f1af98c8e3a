// Runs small graphs on a device with sentinels around all data: inputs end at an unreadable page, outputs are filled
// with NaN before the run, and every byte that the operation must not write is checked afterwards. Inputs are leaves of
// the graph, like weights, so that a case decides the type, stride and row kind of each.
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
  std::string level;  // of the CPU; "" for others
  int threads = 1;
  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;

  bool is_cpu() const { return !level.empty(); }
};

// ref, the CPU on every level that runs here with one thread and with three, the CPU with OpenBLAS, and accelerators.
std::vector<TestDevice>& test_devices();

// Memory that ends at the end of a page, followed by a page that cannot be accessed. The bytes before it on its own
// pages are sentinels. The end is rounded down to a multiple of `alignment`, a power of two.
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

// Padding rows of float inputs: a NaN other than the sentinel, so that results computed from padding are noticed.
inline constexpr uint32_t kPaddingBits = 0x7fc12345u;

// An input of a case. The padding rows of a kTokens or kOutputs leaf hold kPaddingBits.
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
  std::unique_ptr<Buffer> arena;  // of the steps that use the cache
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
