// Shared by the operations of the CPU backend: the device and the stream as they see them. There is one file per
// operation or family, with the same name as in ggml-like/ref; its records are at its end.
#pragma once

#include <vector>

#include "backends/cpu/kernel_table.h"
#include "backends/cpu/thread_pool.h"
#include "ggml-like/backend.h"

namespace infer::cpu {

class CpuDevice : public Device {
 public:
  virtual const KernelTable& kernels() const = 0;
  virtual int n_threads() const = 0;
  virtual MatmulKernel matmul_kernel(DataType weight, int64_t n_tokens) = 0;  // see KernelChoice::matmul()
};

class CpuStream : public HostStream {
 public:
  virtual ThreadPool& pool() = 0;
  virtual const KernelTable& kernels() const = 0;
  virtual MatmulKernel matmul_kernel(DataType weight, int64_t n_tokens) = 0;  // see KernelChoice::matmul()
  // The weight of the next matmul of this run; null when unknown.
  virtual const TensorRef* next_weight() const = 0;
};
inline CpuStream& cpu(Stream& stream) { return static_cast<CpuStream&>(stream); }

// Splits n items into pieces of at least `least` items and calls body(begin, end, thread).
template <typename Body>
void parallel_ranges(CpuStream& stream, int64_t n, int64_t least, const Body& body) {
  const int64_t pieces =
      std::max<int64_t>(1, std::min<int64_t>(n / std::max<int64_t>(1, least), stream.pool().size() * 4));
  stream.pool().run(pieces, [&](int64_t i, int thread) { body(n * i / pieces, n * (i + 1) / pieces, thread); });
}

inline size_t whole_cache_lines(size_t bytes) { return (bytes + 63) / 64 * 64; }

inline bool supports_any(const OpDesc&, const Device&) { return true; }
inline std::unique_ptr<Prepared> nothing_to_prepare(const OpDesc&, Device&) { return std::make_unique<Prepared>(); }

// The operations of each file, for cpu_device.cpp.
std::span<const OpRecord> attention_ops();
std::span<const OpRecord> columns_ops();
std::span<const OpRecord> elementwise_ops();
std::span<const OpRecord> matmul_ops();
std::span<const OpRecord> moe_ops();
std::span<const OpRecord> norm_ops();
std::span<const OpRecord> recurrent_ops();
std::span<const OpRecord> rope_ops();
std::span<const OpRecord> rows_ops();
std::span<const OpRecord> sparse_attention_ops();
std::span<const OpRecord> streams_ops();

}  // namespace infer::cpu
