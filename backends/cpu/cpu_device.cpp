#include "backends/cpu/cpu_device.h"

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <set>
#include <vector>

#include "backends/cpu/cpu_ops.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernel_choice.h"
#include "ggml-like/error.h"

namespace infer {
namespace cpu {
namespace {

const std::vector<OpRecord>& records() {
  static const std::vector<OpRecord> kRecords =
      all_records({attention_ops(), columns_ops(), elementwise_ops(), matmul_ops(), moe_ops(), norm_ops(),
                   recurrent_ops(), rope_ops(), rows_ops(), sparse_attention_ops(), streams_ops()});
  return kRecords;
}

class StreamImpl final : public CpuStream {
 public:
  StreamImpl(const KernelTable& kernels, std::shared_ptr<KernelChoice> choice, const CpuOptions& options)
      : kernels_(kernels),
        choice_(std::move(choice)),
        options_(options),
        pool_(std::max(options.n_threads, options.n_threads_batch), options.processors) {}
  ThreadPool& pool() override { return pool_; }
  const KernelTable& kernels() const override { return kernels_; }
  MatmulKernel matmul_kernel(DataType weight, int64_t n_tokens) override { return choice_->matmul(weight, n_tokens); }
  const TensorRef* next_weight() const override { return next_weight_; }
  int n_threads() const override { return pool_.size(); }
  void parallel_for(int64_t n, const std::function<void(int64_t piece, int thread)>& body) override {
    pool_.use_threads(pool_.size());
    pool_.run(n, body);
  }

 protected:
  void run_nodes(std::span<const Node> nodes, const StepView& step) override {
    if (!options_.processors.empty()) stay_on(options_.processors[0]);
    const bool batch = step.n_tokens() > step.n_sequences();
    pool_.use_threads(batch ? options_.n_threads_batch : options_.n_threads);
    // Plans run step after step: the matmul after the last one is the first of the next step.
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].launch.op.op == Op::kMatMul) next_weight_ = following_weight(nodes, i);
      nodes[i].record->launch(*nodes[i].prepared, nodes[i].launch, *this);
    }
  }

 private:
  static const TensorRef* following_weight(std::span<const Node> nodes, size_t node) {
    for (size_t k = 1; k < nodes.size(); ++k) {
      const Launch& launch = nodes[(node + k) % nodes.size()].launch;
      if (launch.op.op == Op::kMatMul) return &launch.inputs[1];
    }
    return nullptr;
  }

  const KernelTable& kernels_;
  const std::shared_ptr<KernelChoice> choice_;
  const CpuOptions options_;
  ThreadPool pool_;
  const TensorRef* next_weight_ = nullptr;
};

class DeviceImpl final : public CpuDevice {
 public:
  // REQUIRES that both numbers of threads are set.
  DeviceImpl(const KernelTable& kernels, const CpuOptions& options)
      : kernels_(kernels),
        options_(options),
        choice_(std::make_shared<KernelChoice>(kernels, options)),
        n_threads_(std::max(options.n_threads, options.n_threads_batch)) {}
  std::string name() const override { return "cpu"; }
  std::string description() const override {
    return concat(processor_name(), ", ", kernels_.level, ", ", n_threads_, n_threads_ == 1 ? " thread" : " threads");
  }
  DeviceMemory memory() const override { return host_memory(); }
  bool is_host() const override { return true; }
  std::unique_ptr<Buffer> allocate(size_t bytes) override { return allocate_host(bytes); }
  std::unique_ptr<Buffer> allocate_staging(size_t bytes) override { return allocate_host(bytes); }
  std::unique_ptr<Stream> create_stream() override { return std::make_unique<StreamImpl>(kernels_, choice_, options_); }
  std::span<const OpRecord> operations() const override { return records(); }
  const KernelTable& kernels() const override { return kernels_; }
  int n_threads() const override { return n_threads_; }
  MatmulKernel matmul_kernel(DataType weight, int64_t n_tokens) override { return choice_->matmul(weight, n_tokens); }
  double read_bandwidth() override;
  MachineLimits measure_limits() override;

 private:
  const KernelTable& kernels_;
  const CpuOptions options_;
  const std::shared_ptr<KernelChoice> choice_;
  const int n_threads_;
};

// The best of five passes over 256 MiB, in which each thread reads a contiguous share.
double DeviceImpl::read_bandwidth() {
  constexpr int64_t kBytes = 256 << 20, kPiece = kBytes / 64;
  const std::unique_ptr<Buffer> buffer = allocate_host(kBytes);
  std::memset(buffer->host(), 1, kBytes);
  ThreadPool pool(n_threads_, options_.processors);
  std::atomic<int32_t> sink = 0;
  double best = 0;
  for (int pass = 0; pass < 5; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    pool.run(n_threads_, [&](int64_t i, int) {
      const int64_t begin = 64 * i / n_threads_ * kPiece, end = 64 * (i + 1) / n_threads_ * kPiece;
      sink += kernels_.probe_read(reinterpret_cast<const uint8_t*>(buffer->host()) + begin, end - begin);
    });
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, kBytes / seconds);
  }
  return best;
}

// Operations per second of a probe on all threads: the best of five passes of about 5 ms each.
double peak_rate(ThreadPool& pool, int n_threads, int64_t (*probe)(int64_t)) {
  double best = 0;
  int64_t turns = 1 << 12;
  for (int pass = 0; pass < 5;) {
    std::atomic<int64_t> operations = 0;
    const auto start = std::chrono::steady_clock::now();
    pool.run(n_threads, [&](int64_t, int) { operations += probe(turns); });
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (seconds < 2e-3) {
      turns *= 2;
      continue;
    }
    best = std::max(best, static_cast<double>(operations.load()) / seconds);
    ++pass;
  }
  return best;
}

MachineLimits DeviceImpl::measure_limits() {
  ThreadPool pool(n_threads_, options_.processors);
  return {read_bandwidth(), peak_rate(pool, n_threads_, kernels_.probe_dot),
          peak_rate(pool, n_threads_, kernels_.probe_fma)};
}

}  // namespace
}  // namespace cpu

int physical_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  // Hyper-threads of one core share the same list of siblings.
  std::set<std::string> cores;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (!CPU_ISSET(i, &set)) continue;
    std::ifstream file(concat("/sys/devices/system/cpu/cpu", i, "/topology/thread_siblings_list"));
    std::string siblings;
    cores.insert(std::getline(file, siblings) ? siblings : concat("cpu", i));
  }
  return std::max(1, static_cast<int>(cores.size()));
}

std::vector<std::string> cpu_levels() {
  std::vector<std::string> names;
  for (const cpu::Level& level : cpu::levels()) {
    if (level.runs_here) names.push_back(level.kernels->level);
  }
  return names;
}

std::unique_ptr<Device> create_cpu_device(const CpuOptions& options) {
  const cpu::KernelTable& kernels = options.level.empty() ? cpu::choose_kernels() : cpu::choose_kernels(options.level);
  CpuOptions chosen = options;
  if (chosen.n_threads <= 0) chosen.n_threads = physical_cores();
  if (chosen.n_threads_batch <= 0) chosen.n_threads_batch = chosen.n_threads;
  return std::make_unique<cpu::DeviceImpl>(kernels, chosen);
}

}  // namespace infer
