#include "backends/cpu/kernel_choice.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <limits>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "backends/cpu/thread_pool.h"
#include "ggml-like/backend.h"
#include "ggml-like/data_type.h"

namespace infer::cpu {
namespace {

constexpr int64_t kRowLength = 4096;
constexpr size_t kBytesPerThread = 4 << 20, kMaxBytes = 64 << 20;
constexpr int kPasses = 4;
constexpr double kWorthwhile = 0.97;  // as a fraction of the default kernel's time; a smaller gain is noise

#if defined(__x86_64__)
bool has_clflushopt() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_CLFLUSHOPT) != 0;
}

// During generation weights are read from memory, so the measured ones must not be in a cache.
void evict_from_caches(const std::byte* data, size_t bytes) {
  static const bool unordered = has_clflushopt();  // clflushopt evicts many lines at a time, clflush one after another
  for (size_t i = 0; i < bytes; i += 64) {
    if (unordered) asm volatile("clflushopt %0" ::"m"(data[i]) : "memory");
    else __builtin_ia32_clflush(data + i);
  }
  __builtin_ia32_mfence();
}
#else
void evict_from_caches(const std::byte*, size_t) {}  // no level of this architecture has two kernels for a type
#endif

}  // namespace

KernelChoice::KernelChoice(const KernelTable& table, const CpuOptions& options) : table_(table), options_(options) {
  for (int i = 0; i < table.n_matmuls; ++i) entries_.push_back(std::make_unique<Entry>());
}

MatmulKernel KernelChoice::matmul(DataType type, int64_t n_tokens) {
  for (int i = 0; i < table_.n_matmuls; ++i) {
    const MatmulKernels& kernels = table_.matmuls[i];
    if (kernels.type != type) continue;
    const MatmulKernel usual = kernels.for_tokens(n_tokens);
    if (n_tokens > 2 || !kernels.other_gemv || options_.kernels == CpuOptions::Kernels::kDefault) return usual;
    const MatmulKernel other = n_tokens == 1 ? kernels.other_gemv : kernels.other_of_two;
    if (options_.kernels == CpuOptions::Kernels::kOther) return other;
    Entry& entry = *entries_[static_cast<size_t>(i)];
    std::call_once(entry.once, [&] { entry.takes_other = other_is_faster(kernels); });
    return entry.takes_other ? other : usual;
  }
  return traits(type).dot ? gemm_by_dots : nullptr;
}

bool KernelChoice::other_is_faster(const MatmulKernels& kernels) const {
  const int n_threads = std::max(options_.n_threads, 1);
  const auto bytes_per_row = static_cast<int64_t>(row_bytes(kernels.type, kRowLength));
  const size_t wanted = std::min(kBytesPerThread * static_cast<size_t>(n_threads), kMaxBytes);
  const int64_t rows = std::max<int64_t>(1, static_cast<int64_t>(wanted) / n_threads / bytes_per_row / kMatmulRows) *
                       kMatmulRows * n_threads;
  const size_t bytes = static_cast<size_t>(rows * bytes_per_row);
  const std::unique_ptr<Buffer> weights = allocate_host(bytes);
  std::memset(weights->host(), 0x11, bytes);  // a small positive scale; also makes the system allocate the pages

  // One token with values of zero: the time does not depend on them.
  const size_t blocks = static_cast<size_t>(kRowLength / 32 * padded_tokens(1));
  const std::unique_ptr<Buffer> activations = allocate_host(blocks * sizeof(Activation32));
  static_assert(8 * sizeof(Activation32) >= sizeof(Activation256));
  std::memset(activations->host(), 0, blocks * sizeof(Activation32));
  std::vector<float> result(static_cast<size_t>(rows));
  float* const out[] = {result.data()};
  const size_t scratch_bytes = (matmul_scratch_bytes(1, kRowLength) + 63) / 64 * 64;
  const std::unique_ptr<Buffer> scratch = allocate_host(scratch_bytes * static_cast<size_t>(n_threads));

  ThreadPool pool(n_threads, options_.processors);
  const auto run = [&](MatmulKernel kernel) {
    pool.run(n_threads, [&](int64_t part, int) {
      const int64_t begin = rows * part / n_threads, end = rows * (part + 1) / n_threads;
      const auto* base = reinterpret_cast<const uint8_t*>(weights->host());
      const uint8_t* part_end = base + end * bytes_per_row;
      kernel({.type = kernels.type,
              .weight = base,
              .row_bytes = bytes_per_row,
              .k = kRowLength,
              .x = activations->host(),
              .x_stride = padded_tokens(1),
              .n_tokens = 1,
              .out = out,
              .row_begin = begin,
              .row_end = end,
              .stream_end = part_end,
              .next = base + begin * bytes_per_row,
              .scratch = reinterpret_cast<float*>(scratch->host() + scratch_bytes * static_cast<size_t>(part))});
    });
  };
  std::array<double, 2> best;
  best.fill(std::numeric_limits<double>::infinity());
  for (int pass = 0; pass < kPasses; ++pass) {
    for (size_t i = 0; i < best.size(); ++i) {
      evict_from_caches(weights->host(), bytes);
      const auto start = std::chrono::steady_clock::now();
      run(i == 0 ? kernels.for_tokens(1) : kernels.other_gemv);
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      best[i] = std::min(best[i], seconds);
    }
  }
  return best[1] < kWorthwhile * best[0];
}

}  // namespace infer::cpu
